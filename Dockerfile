# The gateway in an image with nothing else in it. See docs/install.md.
#
#   docker build -t tidegate .
#   docker run -p 8080:8080 -v ./conf:/etc/tidegate:ro tidegate
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH scripts/build.sh /out/tidegate
RUN mkdir -p /out/state

FROM scratch
# For upstreams, key sets and Redis over TLS.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/tidegate /tidegate
# Mount a folder over it, with a tidegate.yaml of your own.
COPY deploy/image/ /etc/tidegate/
# The only place that the process may write to, for a snapshot: mount a volume there.
COPY --from=build --chown=65532:65532 /out/state/ /var/lib/tidegate/
ENV TIDEGATE_CONFIG=/etc/tidegate/tidegate.yaml
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s CMD ["/tidegate", "health"]
ENTRYPOINT ["/tidegate"]
CMD ["serve"]
