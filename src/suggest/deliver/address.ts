import { lookup as systemLookup } from "node:dns/promises"
import ipaddr from "ipaddr.js"
import { codeOf } from "../../core/error.ts"

/** The destination of a message, with the one address that was checked and will be connected to. */
export type DeliveryTarget = { url: URL; address: string }
export type DnsLookup = (host: string) => Promise<{ address: string }[]>

const MAX_URL_LENGTH = 2_000
/**
 * The address at which Azure offers services to its virtual machines. It works only inside Azure, and no reserved range
 * contains it.
 */
const AZURE_HOST = "168.63.129.16"

/**
 * Looks up a host once and returns the address to connect to, or the reason for refusing it. A webhook must not become a
 * way into this machine or its network. `allowed` are hosts that the user named (`localhost:3000`, `hooks.lan`): only
 * these may be private or without TLS. Never throws.
 */
export async function targetOf(
  text: string,
  allowed: readonly string[],
  lookup: DnsLookup = (host) => systemLookup(host, { all: true }),
): Promise<DeliveryTarget | { refused: string }> {
  const checked = checkUrl(text, allowed)
  if ("refused" in checked) return checked
  const { url, isAllowed } = checked
  const host = hostOf(url)
  let addresses: { address: string }[]
  try {
    addresses = ipaddr.isValid(host) ? [{ address: host }] : await lookup(host)
  } catch (error) {
    return { refused: `${host} cannot be found (${codeOf(error) || "no answer"})` }
  }
  const [first] = addresses
  if (!first) return { refused: `${host} has no address` }
  // If one of several addresses is private, it is an attack or a mistake, so nothing is sent.
  const privateAddress = isAllowed ? undefined : addresses.find(({ address }) => !isPublic(address))
  return privateAddress
    ? { refused: `${host} is not on the public internet. ${howToAllow(url)}` }
    : { url, address: first.address }
}

/** Makes all checks that need no DNS lookup. */
export function checkUrl(
  text: string,
  allowed: readonly string[],
): { url: URL; isAllowed: boolean } | { refused: string } {
  if (text.length > MAX_URL_LENGTH || !URL.canParse(text))
    return { refused: "it is not a URL like https://example.com/dex" }
  const url = new URL(text)
  if (url.protocol !== "https:" && url.protocol !== "http:") return { refused: "it must begin with https://" }
  if (url.username || url.password)
    return { refused: "it must not contain a name or password; the receiver recognises dex by its signature" }
  const host = hostOf(url)
  if (host === "" || host.includes("%")) return { refused: "it has no valid host" }
  const isAllowed = isAllowedHost(url, allowed)
  if (url.protocol === "http:" && !isAllowed)
    return {
      refused: `it must begin with https://, because anybody on the network could read it without TLS. ${howToAllow(url)}`,
    }
  if (!isAllowed && ipaddr.isValid(host) && !isPublic(host))
    return { refused: `${host} is not on the public internet. ${howToAllow(url)}` }
  return { url, isAllowed }
}

/** True for an ordinary address on the internet, and false for unknown kinds of addresses. */
export function isPublic(address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  const parsed = ipaddr.parse(address)
  if (parsed.range() !== "unicast" || parsed.toString() === AZURE_HOST) return false
  // Only 2000::/3 is assigned. Other IPv6 addresses that the library calls unicast may lead to an IPv4 network.
  return parsed.kind() === "ipv4" || (parsed.toByteArray()[0]! & 0xe0) === 0x20
}

/** True if the host is listed exactly, with this port or without a port. */
function isAllowedHost(url: URL, allowed: readonly string[]): boolean {
  const port = url.port || (url.protocol === "https:" ? "443" : "80")
  const name = url.hostname.toLowerCase()
  return allowed.some((one) => {
    const allowedHost = one.trim().toLowerCase()
    return allowedHost !== "" && (allowedHost === name || allowedHost === `${name}:${port}`)
  })
}

/** Returns the host without the brackets around an IPv6 address. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, "")
}

function howToAllow(url: URL): string {
  return `If you trust it: dex config set deliver.allow_hosts ${url.host}`
}
