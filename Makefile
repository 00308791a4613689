# Every task of the project. `make` alone says what there is.
SHELL := /bin/bash
N ?=

.DEFAULT_GOAL := help
.PHONY: help run build lint test check bench chaos powercut restarts cluster siege canaries heap sanitize dashboard openapi interop fuzz simulate doc sbom deb deb-test first-push clean

help:
	@echo 'make run        build (release), start the sandbox relay, send one notification, serve until Ctrl-C'
	@echo 'make test       build and run all tests, then short crash and power-cut runs'
	@echo 'make lint       formatting, text files, syntax of the scripts: what needs no build, in seconds'
	@echo 'make check      make lint, what apps resolve, a release build, promtool on metrics and alert rules, then all that make test does'
	@echo 'make bench      measure the sender and the whole relay beside h2load'
	@echo 'make chaos      kill the relay 200 times under load and count what was lost (N=1000 for more)'
	@echo 'make powercut   lose what was not synced, 100 times, and count what was lost (N=20 for less)'
	@echo 'make restarts   restart the relay 200 times under load and count the calls that went unanswered (N=… for more)'
	@echo 'make cluster    three relays on one PostgreSQL: kills, crashes, failover, cuts, a silent push service (SCENARIO=… for some)'
	@echo 'make siege      attack a relay over loopback, a row for each attack: what others felt (N=30 for longer, ATTACK=… for some)'
	@echo 'make canaries   plant a value in every field, and search log, pages, files and memory for it'
	@echo 'make heap       look through a core image of an idle relay that has served every protocol; as root'
	@echo 'make sanitize   delivery, stores, HTTP/2 and ingresses under AddressSanitizer and ThreadSanitizer (SANITIZER=thread for one)'
	@echo 'make dashboard  look at the dashboard in headless Chromium, on a phone and a desk, by day and by night'
	@echo 'make openapi    let schemathesis hold a sandbox against its OpenAPI pages'
	@echo 'make interop    run foreign peers against us, one row each'
	@echo 'make fuzz       a million inputs for each parser and box opener (RUNS=… for another number, TARGET=… for one; TOTAL=100000000 for so many in all)'
	@echo 'make simulate   the relay on simulated machines that crash and lie, by seed (SEEDS=20000 for more)'
	@echo 'make doc        build the reference of every library, as an app sees it, into .build/doc'
	@echo 'make deb        the Debian package, into .build/deb'
	@echo 'make deb-test   install that package on a bare Debian 12, use, upgrade, downgrade and purge it (OLDER=PACKAGE)'
	@echo 'make first-push walk from a bare Debian 12 with that package to a first push of each protocol, and time it'
	@echo 'make sbom       name, version and licence of everything that is linked'

run:
	@scripts/run

build:
	@scripts/setup run
	swift build -c release --product sealbell

lint:
	@scripts/setup run test
	@scripts/lint

test:
	@scripts/test

check:
	@scripts/check

bench:
	@scripts/task bench $(if $(N),N=$(N))

chaos:
	@scripts/task chaos N=$(or $(N),200)

powercut:
	@scripts/task powercut N=$(or $(N),100)

restarts:
	@scripts/task restarts N=$(or $(N),200)

# What scripts/cluster/run takes is taken from here too.
cluster:
	@scripts/task cluster $(foreach word,SCENARIO N CRASHES STALL AWAY RATE SEED OLDER KEEP,$(if $($(word)),$(word)=$($(word))))

siege:
	@scripts/task siege N=$(or $(N),10) $(if $(ATTACK),ATTACK=$(ATTACK))

canaries:
	@scripts/canaries

heap:
	@scripts/setup run heap
	swift build --product sealbell
	@scripts/heap/run

sanitize:
	@scripts/sanitize/run $(SANITIZER)

dashboard:
	@scripts/setup run browser
	swift build --product sealbell
	@scripts/dashboard

openapi:
	@scripts/setup run
	swift build --product sealbell
	@scripts/openapi

interop:
	@scripts/interop/run

fuzz:
	@scripts/fuzz $(or $(RUNS),1000000) $(TARGET)

simulate:
	@scripts/simulate

doc:
	@scripts/doc

sbom:
	@scripts/sbom

deb:
	@scripts/deb

deb-test:
	@scripts/deb-test "$$(ls -t .build/deb/*.deb | head -n 1)" $(OLDER)

first-push:
	@scripts/first-push

clean:
	rm -rf .build .build-static .build-asan .build-tsan .run .venv
