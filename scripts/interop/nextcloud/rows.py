"""Nextcloud's rows: PHP as the server's half."""
from . import php

ROWS = php.ROWS
