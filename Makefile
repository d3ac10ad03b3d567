# The targets that people and CI use. Nothing but Go, make and git is needed.
SHELL := /bin/sh
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X github.com/faroshq/kedge-hub/pkg/version.version=$(VERSION)
GOLANGCI_LINT_VERSION := v2.15.0
BIN := $(CURDIR)/bin

# What is built names no path of this machine. Another clone then takes it from go's cache, with the results of unit tests
# that read no file.
export GOFLAGS := $(shell go env GOFLAGS) -trimpath

# Programs that are built from the source of others are kept outside the tree, by version,
# so that a clean clone does not build them again.
TOOLS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kedge-hub/tools
GO_VERSION := $(shell go env GOVERSION)
GOLANGCI_LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_LINT_VERSION)-$(GO_VERSION)/golangci-lint
MODULE_TOOLS := $(TOOLS)/modules-$(shell cat go.mod go.sum | cksum | cut -d ' ' -f 1)-$(GO_VERSION)
DEX := $(TOOLS)/dex-$(shell cat test/dex/go.mod test/dex/go.sum | cksum | cut -d ' ' -f 1)-$(GO_VERSION)/dex
PROMTOOL := $(TOOLS)/promtool-$(shell cat test/promql/go.mod test/promql/go.sum | cksum | cut -d ' ' -f 1)-$(GO_VERSION)/promtool
STANDALONE := $(TOOLS)/standalone-$(shell cat go.mod go.sum test/standalone/go.sum | cksum | cut -d ' ' -f 1)-$(GO_VERSION)

# The version before this one, from which people upgrade and to which they roll back: a commit, because there are no
# tags. Set it to that of a release when it is out, and run make upgrade-fixture.
FROM ?= c5c095145e0bfc31ced93c36530beecc6a8f7ba7
FROM_COMMIT := $(shell git rev-parse --verify --quiet '$(FROM)^{commit}')
HUB_BEFORE := $(TOOLS)/kedge-hub-$(or $(FROM_COMMIT),unknown)-$(GO_VERSION)/kedge-hub

# The checks of the portal, the only thing here that needs Node. Their versions are pinned by a lock file.
PORTAL_TOOLS := $(TOOLS)/portal-$(shell cat test/portal/package.json test/portal/package-lock.json | cksum | cut -d ' ' -f 1)
NPM := $(shell command -v npm)
KUBERNETES := $(TOOLS)/kubernetes-$(shell cat test/kubernetes/go.mod test/kubernetes/go.sum test/kubernetes/crds/go.mod | cksum | cut -d ' ' -f 1)-$(GO_VERSION)

# These link a whole kcp: the race detector would compile kcp a second time.
KCP_PACKAGES := ./pkg/kcp/embedded ./cmd/kedge-hub ./test/framework/kcpserver
UNIT_PACKAGES = $(shell go list ./apis/... ./pkg/... ./cmd/... ./config/... ./test/bench ./test/contract ./test/doubles/... ./test/framework | grep -v -e pkg/kcp/embedded -e cmd/kedge-hub)

.DEFAULT_GOAL := help
.PHONY: help build build-bigquery standalone image chart run test test-unit test-integration test-e2e test-upgrade upgrade-fixture test-deploy bench lint lint-portal generate verify clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | awk -F '\t' '{printf "  %-18s %s\n", $$1, $$2}'

build: ## build kedge-hub, kedge and kubectl-kedge into bin/
	go build -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/kedge-hub ./cmd/kedge
	@ln -sf kedge $(BIN)/kubectl-kedge

build-bigquery: ## build kedge-billing-bigquery into bin/, from a module of its own
	cd cmd/kedge-billing-bigquery && go build -o $(BIN)/ .

$(MODULE_TOOLS)/kubectl:
	go build -o $@ k8s.io/kubernetes/cmd/kubectl

$(MODULE_TOOLS)/apigen:
	go build -o $@ github.com/kcp-dev/sdk/cmd/apigen

$(BIN)/kubectl: $(MODULE_TOOLS)/kubectl
	@mkdir -p $(BIN) && ln -sf $< $@

# The image and the chart. Programs of an image need no C library and name no path of this machine.
IMAGE := $(BIN)/image
IMAGE_TAG ?= kedge-hub:$(VERSION)
IMAGE_ARCH ?= $(shell go env GOARCH)
PLATFORMS := linux-amd64 linux-arm64 darwin-amd64 darwin-arm64 windows-amd64 windows-arm64
IMAGE_TIME := $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null || echo 0))

image: ## make the container image, without a container engine: bin/image has an OCI layout and a tarball
	CGO_ENABLED=0 GOOS=linux GOARCH=$(IMAGE_ARCH) go build -trimpath -buildvcs=false -ldflags '-s -w -buildid= $(LDFLAGS)' -o $(IMAGE)/programs/ ./cmd/kedge-hub ./cmd/kedge
	@rm -rf $(IMAGE)/downloads
	@for platform in $(PLATFORMS); do echo "kedge for $$platform"; CGO_ENABLED=0 GOOS=$${platform%-*} GOARCH=$${platform#*-} \
		go build -trimpath -buildvcs=false -ldflags '-s -w -buildid= $(LDFLAGS)' -o $(IMAGE)/downloads/$$platform/ ./cmd/kedge || exit 1; done
	cd deploy/image && go run . --out $(IMAGE) --downloads $(IMAGE)/downloads --tag $(IMAGE_TAG) --version $(VERSION) --arch $(IMAGE_ARCH) --created $(IMAGE_TIME) $(IMAGE)/programs/kedge-hub $(IMAGE)/programs/kedge

chart: ## package the Helm chart as bin/kedge-hub-{version}.tgz
	cd test/chart && go run ./package --chart $(CURDIR)/deploy/chart --app-version $(VERSION) --out $(BIN)

# The identity provider of the tests, from a module of its own.
$(DEX):
	cd test/dex && go build -o $@ github.com/dexidp/dex/cmd/dex

$(BIN)/dex: $(DEX)
	@mkdir -p $(BIN) && ln -sf $< $@

# An etcd and a kcp of the versions that kedge-hub links: they have its go.mod. test/standalone has the hashes that
# kcp's and etcd's commands need besides.
$(STANDALONE)/kcp:
	@mkdir -p $(@D) && cp go.mod $(@D)/go.mod && cat go.sum test/standalone/go.sum > $(@D)/go.sum
	go build -modfile=$(@D)/go.mod -o $(@D)/etcd go.etcd.io/etcd/server/v3
	go build -modfile=$(@D)/go.mod -o $@ github.com/kcp-dev/kcp/cmd/kcp

$(BIN)/kcp: $(STANDALONE)/kcp
	@mkdir -p $(BIN) && ln -sf $< $@ && ln -sf $(<D)/etcd $(BIN)/etcd

standalone: $(BIN)/kcp ## build the etcd and the kcp that kedge-hub links as programs of their own into bin/, for kedge-hub check --promote

# Programs that run for seconds are not optimized: the compiler takes two thirds of the time.
FOR_SECONDS := -gcflags='all=-N -l'

# Prometheus' tool for alerts, likewise. It asks no cloud for targets.
$(PROMTOOL):
	cd test/promql && go build $(FOR_SECONDS) -tags remove_all_sd -o $@ github.com/prometheus/prometheus/cmd/promtool

# The kube-apiserver and the etcd that validate the objects of the chart, likewise, and the
# CustomResourceDefinitions of the kinds that Kubernetes does not have.
$(KUBERNETES)/kube-apiserver:
	cd test/kubernetes && go build $(FOR_SECONDS) -o $(KUBERNETES)/etcd go.etcd.io/etcd/server/v3 && go build $(FOR_SECONDS) -o $@.new k8s.io/kubernetes/cmd/kube-apiserver
	@mkdir -p $(KUBERNETES)/crds && cd test/kubernetes/crds && go mod download sigs.k8s.io/gateway-api github.com/cert-manager/cert-manager github.com/prometheus-operator/prometheus-operator && gateway=$$(go list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api) && \
		cert=$$(go list -m -f '{{.Dir}}' github.com/cert-manager/cert-manager) && prometheus=$$(go list -m -f '{{.Dir}}' github.com/prometheus-operator/prometheus-operator) && \
		cp -f $$gateway/config/crd/standard/*_tlsroutes.yaml $$gateway/config/crd/standard/*_httproutes.yaml $$gateway/config/crd/standard/*_backendtlspolicies.yaml \
		$$cert/deploy/crds/cert-manager.io_certificates.yaml $$prometheus/example/prometheus-operator-crd/*_servicemonitors.yaml $$prometheus/example/prometheus-operator-crd/*_prometheusrules.yaml $(KUBERNETES)/crds/
	@mv $@.new $@

# It drives the browser of the tests; a module of its own likewise.
$(BIN)/browser: $(wildcard test/browser/*)
	cd test/browser && go build -o $@ .

$(PORTAL_TOOLS)/installed:
	@mkdir -p $(TOOLS) && dir=$$(mktemp -d $(TOOLS)/portal.XXXXXX) && cp test/portal/package.json test/portal/package-lock.json test/portal/.npmrc $$dir && \
		(cd $$dir && npm ci --no-progress && touch installed) && if [ -d $(@D) ]; then rm -rf $$dir; else mv $$dir $(@D); fi

# axe-core checks the pages in the browser of the tests. Where there is no Node they run without it.
$(BIN)/axe.min.js: $(if $(NPM),$(PORTAL_TOOLS)/installed)
	@mkdir -p $(BIN)
	$(if $(NPM),@ln -sf $(PORTAL_TOOLS)/node_modules/axe-core/axe.min.js $@,@echo 'no Node: the pages are not checked with axe-core')

# The hub of the tests that kill it at a write. Only pkg/kcp/transport has files for the tag, so
# this compiles again what imports it, which kcp does not, and links once more.
$(BIN)/kedge-hub-failpoints: FORCE
	go build -tags failpoints -o $@ ./cmd/kedge-hub

$(BIN)/kcpserver: FORCE
	go build -o $(BIN)/kcpserver ./test/framework/kcpserver
.PHONY: FORCE
FORCE:

run: build $(BIN)/kubectl ## start a hub with a kcp of its own, for development, with data in .data/
	@mkdir -p .data && chmod 700 .data
	@test -s .data/tokens.csv || (umask 077; for user in alice bob; do \
		token=$$(head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n'); \
		printf '%s' "$$token" > .data/$$user.token; printf '%s,%s,%s,""\n' "$$token" $$user $$user >> .data/tokens.csv; done)
	@echo 'Development users: alice and bob; their tokens are in .data/alice.token and .data/bob.token'
	$(BIN)/kedge-hub --data-dir .data --token-file .data/tokens.csv

test: ## run all tests
	@for part in unit integration e2e; do \
		began=$$(date +%s); $(MAKE) --no-print-directory test-$$part || exit 1; \
		echo "== $$part tests: $$(($$(date +%s) - began)) s"; done

# golangci-lint runs go vet with all its checks, so go test does not.
#
# Nobody debugs a test binary, and there are some hundred: without symbols linking one takes a quarter less.
TEST := go test -vet=off -ldflags='-s -w'

test-unit: ## run the tests beside the code, with the race detector
	$(TEST) -race $(UNIT_PACKAGES)
	$(TEST) -race -tags failpoints -run FailPoint ./pkg/kcp/transport
	$(TEST) $(KCP_PACKAGES)

# A group of integration tests is a package with a kcp of its own: a kcp that has served
# hundreds of workspaces is slow, and never gives its memory back. Three tests keep two cores
# busy. Two groups run two tests each: with more, each one waits longer, and all take as long. The longest groups begin
# first, so that none runs alone at the end. See test/README.md.
GROUP ?= ...
RUN ?= .
LONGEST := tenancy lifecycle faults
test-integration: build $(BIN)/kcpserver $(BIN)/kubectl $(BIN)/dex $(BIN)/browser ## run the hub, with the race detector, against a real kcp (GROUP=rights RUN=TestSudo for a part)
	KEDGE_TEST_BIN=$(BIN) $(TEST) -race -count=1 -p 2 -parallel 2 -timeout 30m -run '$(RUN)' $(addprefix ./test/integration/,$(if $(filter ...,$(GROUP)),$(LONGEST)) $(GROUP))

# A test of these has a hub with a kcp of its own. More at once take no less time in all, and a hub then needs longer to start
# than the minute in which the code of a login lives.
test-e2e: build $(BIN)/kedge-hub-failpoints $(BIN)/kcpserver $(BIN)/kubectl $(BIN)/dex $(BIN)/kcp $(BIN)/browser $(BIN)/axe.min.js ## run the built programs, the real kubectl and a browser (RUN=TestKill for a part)
	KEDGE_TEST_BIN=$(BIN) $(TEST) -count=1 -p 1 -parallel 3 -timeout 30m -run '$(RUN)' ./test/e2e/...

# The commit is built in a worktree outside this one, which is removed afterwards.
$(HUB_BEFORE):
	@test -n '$(FROM_COMMIT)' || { echo 'FROM=$(FROM) is no commit of this repository: name one, with its history (git fetch --unshallow)'; exit 1; }
	@work=$$(mktemp -d) && trap 'git worktree remove --force "$$work/kedge-hub"; rm -rf "$$work"' EXIT && git worktree add --quiet --detach "$$work/kedge-hub" $(FROM_COMMIT) && \
		echo 'build kedge-hub of $(FROM_COMMIT)' && (cd "$$work/kedge-hub" && go build -ldflags '-X github.com/faroshq/kedge-hub/pkg/version.version=$(FROM_COMMIT)' -o $@ ./cmd/kedge-hub)

UPGRADE := KEDGE_TEST_BIN=$(BIN) KEDGE_TEST_OLD_HUB=$(HUB_BEFORE) $(TEST) -count=1 -v -timeout 30m
test-upgrade: build $(HUB_BEFORE) $(BIN)/kcpserver $(BIN)/kubectl ## upgrade from the version before, roll back and upgrade again, under load (FROM=a commit)
	$(UPGRADE) -parallel 2 -run '^TestUpgrade_' ./test/e2e

upgrade-fixture: build $(HUB_BEFORE) $(BIN)/kcpserver $(BIN)/kubectl ## make the data folder of the version before anew, for the tests (FROM=a commit)
	KEDGE_TEST_UPDATE=1 $(UPGRADE) -run '^TestUpgrade_servesTheDataOfTheVersionBefore$$' ./test/e2e

test-deploy: $(PROMTOOL) $(KUBERNETES)/kube-apiserver ## test what deploy/ has: the chart on a kube-apiserver, alerts and dashboard, the unit, kedge-billing-bigquery, the image (TEST_IMAGE=1: with the real kedge-hub, for which kcp is compiled once more)
	cd test/chart && KEDGE_TEST_KUBERNETES=$(KUBERNETES) go test -count=1 .
	cd test/promql && KEDGE_TEST_PROMTOOL=$(PROMTOOL) go test -count=1 .
	cd cmd/kedge-billing-bigquery && go test -count=1 .
	$(if $(filter 1,$(TEST_IMAGE)),$(MAKE) --no-print-directory image)
	cd deploy/image && KEDGE_TEST_IMAGE=$(if $(filter 1,$(TEST_IMAGE)),$(IMAGE)) go test -count=1 .
	@if command -v systemd-analyze >/dev/null; then dir=$$(mktemp -d) && sed -e 's|/usr/local/bin/kedge-hub|/bin/true|' -e '/^EnvironmentFile=/d' deploy/systemd/kedge-hub.service > $$dir/kedge-hub.service && \
		systemd-analyze verify $$dir/kedge-hub.service; code=$$?; rm -rf $$dir; exit $$code; else echo 'no systemd-analyze: the unit is not checked'; fi

BENCH ?=
bench: build $(BIN)/kcpserver $(BIN)/kubectl $(BIN)/dex ## measure the hub beside its floors and print a table (BENCH=walls for a neighbour beside floods of another tenant; BENCH=many for 300 Workspaces)
	KEDGE_TEST_BIN=$(BIN) go run ./test/bench $(BENCH)

lint: $(GOLANGCI_LINT) ## run the linters, the package borders among them
	$(GOLANGCI_LINT) run --allow-parallel-runners ./...

ifneq ($(NPM),)
lint-portal: $(PORTAL_TOOLS)/installed ## check the types and the formatting of the portal's files (with Node)
	@ln -sfn $(PORTAL_TOOLS)/node_modules test/portal/node_modules
	$(PORTAL_TOOLS)/node_modules/.bin/openapi-typescript config/openapi/openapi.yaml --output test/portal/openapi.d.ts >/dev/null
	$(PORTAL_TOOLS)/node_modules/.bin/tsc --project test/portal
	$(PORTAL_TOOLS)/node_modules/.bin/eslint --config test/portal/eslint.config.js pkg/portal/static
else
lint-portal:
	@echo 'no Node: the portal is not checked'
endif

$(GOLANGCI_LINT):
	GOBIN=$(@D) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

generate: $(MODULE_TOOLS)/apigen ## make deepcopy, CRDs and APIResourceSchemas anew from apis/
	go tool controller-gen object paths=./apis/... crd paths=./apis/... output:crd:dir=config/crds
	$(MODULE_TOOLS)/apigen --input-dir config/crds --output-dir config/schemas

verify: generate ## fail where generated files are not those that are committed
	@test -z "$$(git status --porcelain -- apis config)" || { git --no-pager diff -- apis config; git status --porcelain -- apis config; echo 'generated files are stale: run make generate and commit'; exit 1; }

clean: ## remove what was built
	rm -rf $(BIN)
