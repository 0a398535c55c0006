import { readHub, writeHub } from "../../config/hub.ts"
import { DexError, isDexError } from "../../core/error.ts"
import { formatRef } from "../../core/ref.ts"
import type { Dex } from "../context.ts"
import { resolveRef } from "../resolve.ts"
import { grant, members, requests, withHub } from "./access.ts"
import { pushedOrWhyNot, pushedShape, pushNow } from "./push-now.ts"
import { type ShareProjectInput, shareProject, unshareProject } from "./share-project.ts"
import { pushedOf } from "./sharing.ts"
import { hubStatus } from "./status.ts"

type HubInput = ShareProjectInput & {
  words: string[]
  level?: string
  forget?: boolean
  off?: boolean
  quiet?: boolean
}

const FORMS =
  "login ADDRESS, status, share [PROJECT], unshare [PROJECT], hold REF, push, requests, grant MEMBER, members, tokens [revoke ID] and logout"

export async function run(dex: Dex, input: HubInput) {
  const [what = "status", name, ...more] = input.words
  const rest = input.words.slice(1)
  if (what === "tokens") return tokens(dex, rest)
  if (what === "requests") return requests(dex, rest)
  if (what === "grant") return grant(dex, rest, input.level)
  if (what === "members") return members(dex, rest)
  if (more.length > 0) throw new DexError("usage", `dex hub ${what} takes no "${more[0]}". See: dex hub --help`)
  switch (what) {
    case "status":
      return hubStatus(dex)
    case "share":
      return shareProject(dex, name, input)
    case "unshare":
      return unshareProject(dex, name, input)
    case "hold":
      return hold(dex, name, input)
    case "push":
      return push(dex, input)
    case "logout":
      return logOut(dex)
    case "login":
      throw new DexError("usage", "Log in on the command line: dex hub login ADDRESS")
    default:
      throw new DexError("usage", `There is no dex hub ${what}. There are ${FORMS}.`)
  }
}

async function push(dex: Dex, { quiet }: HubInput) {
  try {
    return { pushed: pushedShape(await pushNow(dex, quiet ? { byItself: true } : {})) }
  } catch (error) {
    if (quiet && isDexError(error)) return { problem: error.message }
    throw error
  }
}

async function tokens(dex: Dex, [verb, id = "", ...more]: string[]) {
  if (verb !== undefined && (verb !== "revoke" || !/^[0-9]{1,15}$/.test(id) || more.length > 0))
    throw new DexError("usage", "Say which, by its number: dex hub tokens revoke 3. `dex hub tokens` lists them.")
  return withHub(dex, async (hub) => {
    if (verb === undefined) return { tokens: await hub.tokens() }
    await hub.revokeToken(Number(id))
    return { revoked: Number(id) }
  })
}

/** Keeps one conversation here, with its subagents. */
async function hold(dex: Dex, typed: string | undefined, { off, forget }: HubInput) {
  const pushed = pushedOf(dex)
  try {
    if (typed === undefined) return { held: pushed.held().map(formatRef) }
    const { row } = await resolveRef(dex, typed)
    const refs = await (await dex.store()).withSubagents([row.ref])
    if (off) {
      if (!pushed.release(refs)) throw new DexError("not_held", `${formatRef(row.ref)} is not held back.`)
      return { held: pushed.held().map(formatRef) }
    }
    pushed.hold(refs, dex.now())
    const sent = refs
      .flatMap((ref) => pushed.get(ref) ?? [])
      .filter(({ state, rev }) => state !== "gone" && rev !== undefined)
    const held = refs.map(formatRef)
    if (!forget || sent.length === 0) return { held, on_hub: sent.length }
    for (const one of sent) pushed.put({ ...one, state: "leaving", at: dex.now() })
    return { held, on_hub: sent.length, ...(await pushedOrWhyNot(dex)) }
  } finally {
    pushed.close()
  }
}

function logOut(dex: Dex) {
  const { token, ...choices } = readHub(dex.home)
  if (token !== undefined) writeHub(dex.home, choices)
  return { logged_out: token !== undefined, ...(choices.address !== undefined && { address: choices.address }) }
}
