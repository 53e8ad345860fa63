# syntax=docker/dockerfile:1
# The image of a release, of the program that GoReleaser has built. Dockerfile makes the same from source.
FROM gcr.io/distroless/static-debian12:debug-nonroot AS data
RUN ["/busybox/mkdir", "/home/nonroot/data"]

FROM gcr.io/distroless/static-debian12:nonroot
COPY monitor /usr/local/bin/monitor
COPY --from=data --chown=65532:65532 /home/nonroot/data /var/lib/isowatch
ENV ISOWATCH_STORE_PATH=/var/lib/isowatch \
    ISOWATCH_LOG_FORMAT=json
VOLUME ["/var/lib/isowatch"]
EXPOSE 8080
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/monitor"]
CMD ["run", "--config", "/etc/isowatch/isowatch.yaml"]
