import diagnostics from "node:diagnostics_channel"
import { createServer } from "node:net"
import { hostname } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { openSuggestions } from "../../../src/store/suggestions/suggestions.ts"
import { isPublic, targetOf } from "../../../src/suggest/deliver/address.ts"
import { deliverDue } from "../../../src/suggest/deliver/deliver.ts"
import { newSecret } from "../../../src/suggest/deliver/sign.ts"
import { NOW, subscriptionOf, suggestionOf } from "../../support/suggestions.ts"
import { tempDir } from "../../support/temp.ts"
import { receiver } from "./receiver.ts"

/** One address of every range that is not the public internet. */
const REFUSED_V4 =
  "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.254 100.64.0.1 100.127.255.254 168.63.129.16 127.0.0.1 127.1.2.3 127.255.255.254 169.254.169.254 169.254.0.1 172.16.0.1 172.31.255.254 192.0.0.1 192.0.0.171 192.0.2.1 192.31.196.1 192.52.193.1 192.88.99.1 192.168.0.1 192.168.255.254 192.175.48.1 198.18.0.1 198.19.255.254 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.254 240.0.0.1 255.255.255.254 255.255.255.255".split(
    " ",
  )
const REFUSED_V6 =
  ":: ::1 ::127.0.0.1 ::7f00:1 ::a00:1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:127.0.0.1 ::ffff:8.8.8.8 64:ff9b::127.0.0.1 64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b:1::a00:1 100::1 1fff::1 2001::1 2001:0:7f00:1::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1::1 2002:a00:1::1 2002:c0a8:1::1 3fff::1 3fff:fff::1 4000::1 5f00::1 8000::1 fc00::1 fd00::1 fd12:3456::1 fe80::1 fe80::a9fe:a9fe febf::1 fec0::1 ff00::1 ff02::1 ff05::2".split(
    " ",
  )
const PUBLIC = [
  "1.1.1.1",
  "8.8.8.8",
  "93.184.216.34",
  "172.15.255.255",
  "172.32.0.1",
  "100.63.255.255",
  "100.128.0.1",
  "168.63.129.15",
  "2606:4700:4700::1111",
  "2a00:1450:4001::1",
]

/** A name for every refused address, as from a hostile DNS server, and answers with one good address among bad ones. */
const DNS: Record<string, string[]> = {
  ...Object.fromEntries([...REFUSED_V4, ...REFUSED_V6].map((address, i) => [`a${i}.evil.example`, [address]])),
  ...Object.fromEntries(
    [...REFUSED_V4, ...REFUSED_V6].map((address, i) => [`b${i}.evil.example`, ["1.1.1.1", address]]),
  ),
  "scope.evil.example": ["fe80::1%eth0"],
  "no.evil.example": [],
  "odd.evil.example": ["not an address"],
}

function spellings(address: string): string[] {
  const [a, b, c, d] = address.split(".").map(Number) as [number, number, number, number]
  const whole = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0
  const hex = (n: number) => `0x${n.toString(16)}`
  const oct = (n: number) => `0${n.toString(8)}`
  return [
    String(whole),
    hex(whole),
    oct(whole),
    [a, b, c, d].map(hex).join("."),
    [a, b, c, d].map(oct).join("."),
    `${hex(a)}.${b}.${oct(c)}.${d}`,
    `${a}.${(b << 16) | (c << 8) | d}`,
    `${a}.${b}.${(c << 8) | d}`,
    `${address}.`,
    address.replaceAll(".", "。"),
    `%${address.charCodeAt(0).toString(16)}${address.slice(1)}`,
  ]
}

function hostileUrls(port: number): string[] {
  const at = (host: string) => `https://${host}:${port}/x`
  return [
    ...REFUSED_V4.map(at),
    ...["127.0.0.1", "10.0.0.1", "169.254.169.254", "192.168.0.1"].flatMap(spellings).map(at),
    ...REFUSED_V6.map((address) => at(`[${address}]`)),
    ...[
      "[::1%25lo]",
      "[fe80::1%25eth0]",
      "[0:0:0:0:0:0:0:1]",
      "[::FFFF:127.0.0.1]",
      "[::ffff:0x7f.1]",
      "127.1",
      "127.0.1",
      "0",
      "①②⑦.⓪.⓪.①",
    ].map(at),
    ...Object.keys(DNS).map(at),
    ...["localhost", "LOCALHOST", "localhost.", "localhost.localdomain", hostname()].map(at),
    // Not TLS, not HTTP, not an address
    `http://127.0.0.1:${port}/`,
    `http://1.1.1.1:${port}/`,
    `http://a0.evil.example:${port}/`,
    `ftp://127.0.0.1:${port}/`,
    `file:///etc/passwd`,
    `gopher://127.0.0.1:${port}/_x`,
    `data:text/plain,x`,
    `javascript:alert(1)`,
    `//127.0.0.1:${port}/`,
    `127.0.0.1:${port}`,
    `https://`,
    `https:///x`,
    `https://user:password@1.1.1.1:${port}/`,
    `https://1.1.1.1@127.0.0.1:${port}/`,
    `https://127.0.0.1:${port}#@1.1.1.1/`,
    `https://ⓛocalhost:${port}/`,
    `https://127.0.0.1:${port}\\@1.1.1.1/`,
    `https://[::1]:${port}/?x=https://1.1.1.1`,
    `https://127.0.0.1:99999/`,
    `https://127.0.0.1%00.example.com:${port}/`,
    `https://127.0.0.1\t:${port}/`,
    ` https://127.0.0.1:${port}/ `,
    `HTTPS://127.0.0.1:${port}/`,
    `https:127.0.0.1:${port}/`,
    `https://1.1.1.1/${"x".repeat(3_000)}`,
    "",
  ]
}

test("no hostile address is connected to, as seen at this process's sockets and at a listener on loopback", async () => {
  let accepted = 0
  const listener = createServer((socket) => {
    accepted++
    socket.destroy()
  })
  await new Promise<void>((resolve) => listener.listen(0, "::", resolve))
  onTestFinished(() => void listener.close())
  const { port } = listener.address() as { port: number }
  let sockets = 0
  const seen = () => sockets++
  diagnostics.subscribe("net.client.socket", seen)
  onTestFinished(() => void diagnostics.unsubscribe("net.client.socket", seen))

  const suggestions = openSuggestions(join(tempDir(), "suggest.db"))
  onTestFinished(() => suggestions.close())
  const urls = hostileUrls(port)
  expect(urls.length).toBeGreaterThanOrEqual(300)
  for (const [i, url] of urls.entries()) {
    suggestions.subscribe(subscriptionOf(`sub${i}`, { deliver: "webhook", url }), newSecret())
    suggestions.save(suggestionOf(`s${i}`), { subscription: `sub${i}` })
  }
  const parts = {
    suggestions,
    now: () => NOW,
    version: "test",
    // Allowing one host and port allows nothing else.
    allowedHosts: () => [`127.0.0.1:${port + 1}`, "hooks.lan", ""],
    mayLeave: () => true,
  }
  const real = new Set(["localhost", "localhost.", "localhost.localdomain", hostname().toLowerCase()])
  const { lookup } = await import("node:dns/promises")
  const asked: string[] = []
  const outcome = await deliverDue({
    ...parts,
    lookup: async (host) => {
      asked.push(host)
      if (real.has(host)) return lookup(host, { all: true })
      const found = DNS[host]
      if (!found) throw Object.assign(new Error("not found"), { code: "ENOTFOUND" })
      return found.map((address) => ({ address }))
    },
  })
  expect(outcome).toEqual({ delivered: 0, again: urls.length, dead: 0 })
  expect([sockets, accepted]).toEqual([0, 0])
  console.log(`${urls.length} hostile addresses, ${asked.length} names looked up, ${sockets} sockets`)

  // The same check sees a connection if one is made.
  const open = await receiver()
  suggestions.subscribe(subscriptionOf("good", { deliver: "webhook", url: open.url }), newSecret())
  suggestions.save(suggestionOf("good"), { subscription: "good" })
  expect(await deliverDue({ ...parts, allowedHosts: () => [open.host] })).toEqual({ delivered: 1, again: 0, dead: 0 })
  expect(sockets).toBe(1)
})

test("a name is looked up once, so a different second answer has no effect", async () => {
  const answers = ["1.1.1.1", "127.0.0.1"]
  const lookup = async () => [{ address: answers.shift()! }]
  expect(await targetOf("https://rebind.example/x", [], lookup)).toMatchObject({ address: "1.1.1.1" })
  expect(answers).toEqual(["127.0.0.1"])
})

test("only ordinary addresses of the internet are public", () => {
  for (const address of [...REFUSED_V4, ...REFUSED_V6, "", "x", "1.1.1.1.", "fe80::1%eth0"])
    expect(isPublic(address), address).toBe(false)
  for (const address of PUBLIC) expect(isPublic(address), address).toBe(true)
})

test("a host that the user allowed may be private and without TLS, at its port or at all ports", async () => {
  const lookup = async () => [{ address: "192.168.1.5" }]
  const at = async (url: string, allowed: string[]) => "address" in (await targetOf(url, allowed, lookup))
  expect(await at("http://hooks.lan:3000/x", ["hooks.lan:3000"])).toBe(true)
  expect(await at("http://HOOKS.lan:3000/x", [" Hooks.LAN "])).toBe(true)
  expect(await at("http://hooks.lan/x", ["hooks.lan:80"])).toBe(true)
  expect(await at("https://hooks.lan/x", ["hooks.lan:443"])).toBe(true)
  for (const allowed of ["hooks.lan:3001", "lan", "x.hooks.lan", "*", "192.168.1.5"])
    expect(await at("http://hooks.lan:3000/x", [allowed]), allowed).toBe(false)
  expect(await targetOf("https://hooks.lan/x", [], lookup)).toEqual({
    refused: "hooks.lan is not on the public internet. If you trust it: dex config set deliver.allow_hosts hooks.lan",
  })
})
