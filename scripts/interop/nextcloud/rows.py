"""Nextcloud's rows: PHP as the server's half, and PyCA cryptography as phones and servers."""
from tools import later

from . import php

ROWS = php.ROWS + later("nextcloud.phones", ["cryptography as Nextcloud's phones"])
