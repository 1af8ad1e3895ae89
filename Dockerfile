# The published package on Node, as a user without privileges. docs/deployment.md says how to run it.
FROM node:24-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run -s build \
 && npm pack --ignore-scripts --pack-destination /package \
 && mv /package/*.tgz /package/bylaw.tgz

FROM node:24-slim
ENV NODE_ENV=production \
    NODE_COMPILE_CACHE=/var/cache/bylaw \
    HOST=0.0.0.0 \
    PORT=8090 \
    BYLAW_SCHEMA=/app/bylaw.yaml \
    BYLAW_DATA=/data
WORKDIR /app
# The versions of the lock file. Its own user may write /data and its compile cache, and nothing else.
RUN --mount=type=bind,from=build,source=/package,target=/package \
    --mount=type=bind,from=build,source=/build,target=/build \
    mkdir /opt/bylaw /data /var/cache/bylaw \
 && tar -xzf /package/bylaw.tgz -C /opt/bylaw --strip-components=1 \
 && cp /build/package-lock.json /opt/bylaw/ \
 && npm ci --prefix /opt/bylaw --omit=dev --ignore-scripts --no-audit --no-fund \
 && npm cache clean --force \
 && ln -s /opt/bylaw/bin/bylaw.js /usr/local/bin/bylaw \
 && chown node:node /data /var/cache/bylaw
# `node` of the image, by number: orchestrators check that it is not root.
USER 1000:1000
VOLUME /data
EXPOSE 8090
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --start-interval=1s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/readyz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["bylaw"]
CMD ["serve"]
