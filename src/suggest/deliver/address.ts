import { lookup as systemLookup } from "node:dns/promises"
import ipaddr from "ipaddr.js"
import { codeOf } from "../../core/error.ts"

/** Where a message goes, with the one address that was looked at and is connected to. */
export type Target = { url: URL; address: string }
export type Lookup = (host: string) => Promise<{ address: string }[]>

const LONGEST_URL = 2_000
/** Belongs to the machine's host on Azure, and answers only the machines there; no range says so. */
const AZURE_HOST = "168.63.129.16"

/**
 * Looks an address up once and says where to connect, or why not: a webhook must not become a way into this machine or
 * its network. `allowed` are hosts that the user named (`localhost:3000`, `hooks.lan`): only they may be private or
 * without TLS. Never throws.
 */
export async function targetOf(
  text: string,
  allowed: readonly string[],
  lookup: Lookup = (host) => systemLookup(host, { all: true }),
): Promise<Target | { refused: string }> {
  const checked = checkUrl(text, allowed)
  if ("refused" in checked) return checked
  const { url, isAllowed } = checked
  const host = hostOf(url)
  let found: { address: string }[]
  try {
    found = ipaddr.isValid(host) ? [{ address: host }] : await lookup(host)
  } catch (error) {
    return { refused: `${host} cannot be found (${codeOf(error) || "no answer"})` }
  }
  const [first] = found
  if (!first) return { refused: `${host} has no address` }
  // One foreign answer among good ones is somebody's trick or a mistake: in both cases nothing is sent.
  const refused = isAllowed ? undefined : found.find(({ address }) => !isPublic(address))
  return refused
    ? { refused: `${host} is not on the public internet. ${howToAllow(url)}` }
    : { url, address: first.address }
}

/** What can be said before anything is looked up. */
export function checkUrl(
  text: string,
  allowed: readonly string[],
): { url: URL; isAllowed: boolean } | { refused: string } {
  if (text.length > LONGEST_URL || !URL.canParse(text))
    return { refused: "that is no address, like https://example.com/dex" }
  const url = new URL(text)
  if (url.protocol !== "https:" && url.protocol !== "http:") return { refused: "it must begin with https://" }
  if (url.username || url.password)
    return { refused: "it must hold no name and no password: the receiver knows dex by its signature" }
  const host = hostOf(url)
  if (host === "" || host.includes("%")) return { refused: "that is no host" }
  const isAllowed = isAllowedHost(url, allowed)
  if (url.protocol === "http:" && !isAllowed)
    return {
      refused: `without TLS everybody on the way could read it: it must begin with https://. ${howToAllow(url)}`,
    }
  if (!isAllowed && ipaddr.isValid(host) && !isPublic(host))
    return { refused: `${host} is not on the public internet. ${howToAllow(url)}` }
  return { url, isAllowed }
}

/** Whether an address is an ordinary one of the internet. What is not known to be so is not. */
export function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.parse(address)
  if (parsed.range() !== "unicast" || parsed.toString() === AZURE_HOST) return false
  // Addresses are given out in 2000::/3 only; what else the library calls unicast may lead to an IPv4 network.
  return parsed.kind() === "ipv4" || (parsed.toByteArray()[0]! & 0xe0) === 0x20
}

/** Named exactly, with its port or for all of them. */
function isAllowedHost(url: URL, allowed: readonly string[]): boolean {
  const port = url.port || (url.protocol === "https:" ? "443" : "80")
  const name = url.hostname.toLowerCase()
  return allowed.some((one) => {
    const wanted = one.trim().toLowerCase()
    return wanted !== "" && (wanted === name || wanted === `${name}:${port}`)
  })
}

/** Without the brackets of IPv6. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "")
}

function howToAllow(url: URL): string {
  return `If you trust it: dex config set deliver.allow_hosts ${url.host}`
}
