# What a release hands out, so that nobody has to build for a first try: build/dist.
#
#   dist   the wheels (x86-64, arm64), the package for Node, the jars, the Debian package, bills of materials of what they
#          contain, the archive of the sources, SHA256SUMS. A framework for Apple's systems needs Xcode: a Mac builds it from
#          the archive of the sources (bindings/apple/build.sh).

.PHONY: dist

DIST := build/dist
dist: lib wheel wheel-arm64 node jvm
	@rm -rf $(DIST)
	@mkdir -p $(DIST)
	@cp build/wheel/*.whl build/wheel-arm64/*.whl build/node/*.tgz $(DIST)
	@for jar in build/jvm/*.jar; do cp $$jar $(DIST)/$$(basename $$jar .jar)-$(VERSION).jar; done
	@VERSION=$(VERSION) ABI=$(ABI) bindings/c/deb.sh $(DIST) > /dev/null
	@cp build/lib-bundled/holdfast.cdx.json $(DIST)/holdfast-$(VERSION)-x86_64.cdx.json
	@cp build/lib-arm64-bundled/holdfast.cdx.json $(DIST)/holdfast-$(VERSION)-arm64.cdx.json
	@git archive --prefix=holdfast-$(VERSION)/ -o $(DIST)/holdfast-$(VERSION).tar.gz HEAD
	@cd $(DIST) && sha256sum * > ../SHA256SUMS && mv ../SHA256SUMS .
	@ls $(DIST)
