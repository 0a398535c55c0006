import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { tempDir } from "../../test/support/temp.ts"
import { ClusterRefusal, ClusterUnavailable, openCluster } from "../src/search/opensearch/client.ts"
import type { ClusterSettings } from "../src/settings.ts"

describe("a cluster behind TLS", () => {
  /** A proxy that asks for a password, with a certificate of an authority of its own. */
  async function proxy({ name = "localhost", days = 2 } = {}) {
    const folder = tempDir()
    const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: folder, stdio: "pipe" })
    const newKey = ["-newkey", "rsa:2048", "-nodes"]
    openssl("req", "-x509", ...newKey, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=authority")
    openssl("req", ...newKey, "-keyout", "key.pem", "-out", "request.pem", "-subj", `/CN=${name}`)
    writeFileSync(join(folder, "names"), `subjectAltName=DNS:${name}`)
    const signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names", "-out", "cert.pem"]
    openssl("x509", "-req", "-in", "request.pem", ...signed, "-days", String(days))
    const read = (file: string) => readFileSync(join(folder, file), "utf8")
    const server = createServer({ key: read("key.pem"), cert: read("cert.pem") }, (request, response) => {
      const isRight = request.headers.authorization === `Basic ${Buffer.from("dex:secret").toString("base64")}`
      response.writeHead(isRight ? 200 : 401, { "content-type": "application/json" })
      response.end(JSON.stringify(isRight ? { ok: true } : { error: { type: "security_exception" }, status: 401 }))
    })
    await new Promise<void>((resolve) => server.listen(0, "localhost", resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const ask = async (settings: Partial<ClusterSettings>) => {
      const addresses = [`https://localhost:${port}`]
      const cluster = openCluster({ addresses, prefix: "t", shards: 1, user: "dex", password: "secret", ...settings })
      onTestFinished(() => cluster.close())
      return cluster.ask({ method: "GET", path: "/" })
    }
    return { ask, authority: read("ca.pem") }
  }

  test("is used only with the right authority, name, time and password", async () => {
    const good = await proxy()
    expect(await good.ask({ authority: good.authority })).toEqual({ ok: true })
    await expect(good.ask({})).rejects.toThrow(ClusterUnavailable)
    await expect(good.ask({ authority: good.authority, password: "wrong" })).rejects.toThrow(ClusterRefusal)
    await expect(good.ask({ authority: good.authority, user: undefined })).rejects.toThrow(ClusterRefusal)
    const other = await proxy()
    await expect(good.ask({ authority: other.authority })).rejects.toThrow(ClusterUnavailable)
    const misnamed = await proxy({ name: "search.test" })
    await expect(misnamed.ask({ authority: misnamed.authority })).rejects.toThrow(ClusterUnavailable)
    const expired = await proxy({ days: -1 })
    await expect(expired.ask({ authority: expired.authority })).rejects.toThrow(ClusterUnavailable)
  })
})
