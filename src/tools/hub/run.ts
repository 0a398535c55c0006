import { consentFor, readHub, writeHub } from "../../config/hub.ts"
import { isoDate } from "../../core/dates.ts"
import { DexError, isDexError } from "../../core/error.ts"
import { formatRef } from "../../core/ref.ts"
import {
  type HubClient,
  type HubQuarantined,
  type HubReceipt,
  type HubStored,
  isHubError,
  useHub,
} from "../../hub-client/client.ts"
import { keyOfProject } from "../../hub-client/project-key.ts"
import { feedToken, type SharingContext, sharingConsent } from "../../hub-client/push.ts"
import type { WireNotice } from "../../hub-client/wire.ts"
import type { PushState } from "../../store/hub/pushed.ts"
import type { Dex } from "../context.ts"
import { resolveRef } from "../resolve.ts"
import type { HubInput } from "./hub.ts"
import { pushFields, pushNow, tryPush } from "./push-now.ts"
import { shareProject, unshareProject } from "./share-project.ts"
import { isSharingAllowed, openPushedStore, sharingOf } from "./sharing.ts"

const ACTIONS =
  "login ADDRESS, status, share [PROJECT], unshare [PROJECT], hold REF, push, requests, grant MEMBER, members, tokens [revoke ID] or logout"

export async function run(dex: Dex, input: HubInput) {
  const [action = "status", name, ...more] = input.words
  const rest = input.words.slice(1)
  if (action === "tokens") return tokens(dex, rest)
  if (action === "requests") return requests(dex, rest)
  if (action === "grant") return grant(dex, rest, input.level)
  if (action === "members") return members(dex, rest)
  if (more.length > 0) throw new DexError("usage", `dex hub ${action} takes no "${more[0]}". See: dex hub --help`)
  switch (action) {
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
      throw new DexError("usage", `There is no dex hub ${action}. \`dex hub\` takes ${ACTIONS}.`)
  }
}

async function push(dex: Dex, { quiet }: HubInput) {
  try {
    return { pushed: pushFields(await pushNow(dex, quiet ? { isAutomatic: true } : {})) }
  } catch (error) {
    if (quiet && isDexError(error)) return { problem: error.message }
    throw error
  }
}

async function tokens(dex: Dex, [verb, id = "", ...more]: string[]) {
  if (verb !== undefined && (verb !== "revoke" || !/^[0-9]{1,15}$/.test(id) || more.length > 0))
    throw new DexError("usage", "Which token? For example: dex hub tokens revoke 3. `dex hub tokens` lists them.")
  return withHub(dex, async (hub) => {
    if (verb === undefined) return { tokens: await hub.tokens() }
    await hub.revokeToken(Number(id))
    return { revoked: Number(id) }
  })
}

/** Holds back a conversation with its subagents, allows it to be sent again, or lists the conversations that are held back. */
async function hold(dex: Dex, typed: string | undefined, { off, forget }: HubInput) {
  const pushed = openPushedStore(dex)
  try {
    if (typed === undefined) return { held: pushed.held().map(formatRef) }
    const { row } = await resolveRef(dex, typed)
    const refs = await (await dex.store()).withSubagents([row.ref])
    if (off) {
      if (!pushed.release(refs)) throw new DexError("not_held", `${formatRef(row.ref)} is not held back.`)
      return { held: pushed.held().map(formatRef) }
    }
    pushed.hold(refs, dex.now())
    const sentConversations = refs
      .flatMap((ref) => pushed.get(ref) ?? [])
      .filter(({ state, rev }) => state !== "gone" && rev !== undefined)
    const held = refs.map(formatRef)
    if (!forget || sentConversations.length === 0) return { held, on_hub: sentConversations.length }
    for (const conversation of sentConversations) pushed.put({ ...conversation, state: "leaving", at: dex.now() })
    return { held, on_hub: sentConversations.length, ...(await tryPush(dex)) }
  } finally {
    pushed.close()
  }
}

function logOut(dex: Dex) {
  const { token, ...choices } = readHub(dex.home)
  if (token !== undefined) writeHub(dex.home, choices)
  return { logged_out: token !== undefined, address: choices.address }
}

/** Approves or denies a request, or lists all requests. */
export function requests(dex: Dex, words: string[]) {
  const [verb, name, project, ...more] = words
  if (verb === undefined) return withHub(dex, async (hub) => ({ requests: await hub.requests() }))
  if ((verb !== "approve" && verb !== "deny") || name === undefined || more.length > 0)
    throw new DexError("usage", "To answer a request: dex hub requests approve bob. `dex hub requests` lists them.")
  return withHub(dex, async (hub) => {
    const key = project ?? (await onlyRequestOf(hub, name, () => currentProjectKey(dex)))
    return { access: await hub.decide(key, name, verb) }
  })
}

export function grant(dex: Dex, [name, project, ...more]: string[], level = "write") {
  if (name === undefined || more.length > 0)
    throw new DexError(
      "usage",
      "Name a member, and at most one project: dex hub grant bob github.com/acme/api --level read",
    )
  return withHub(dex, async (hub) => ({
    access: await hub.grant(project ?? (await requireProjectKey(dex)), name, level),
  }))
}

export function members(dex: Dex, [project, ...more]: string[]) {
  if (more.length > 0) throw new DexError("usage", "Name at most one project: dex hub members github.com/acme/api")
  return withHub(dex, async (hub) => ({ members: await hub.members(project ?? (await requireProjectKey(dex))) }))
}

/** Runs `work` with a connection to the hub, as the person who is logged in. */
export async function withHub<T>(dex: Dex, work: (hub: HubClient) => Promise<T>): Promise<T> {
  const { address, token } = readHub(dex.home)
  if (address === undefined || token === undefined)
    throw new DexError("no_hub", "You are not logged in. Log in first: dex hub login ADDRESS")
  return useHub({ address, token, consequence: "Nothing was changed." }, work)
}

/** The project that the member asks to share. If the member asks for several, the current one. */
async function onlyRequestOf(
  hub: HubClient,
  name: string,
  currentKey: () => Promise<string | undefined>,
): Promise<string> {
  const keys = (await hub.requests()).filter(({ member }) => member === name).map(({ project }) => project)
  if (keys.length === 1) return keys[0]!
  if (keys.length === 0)
    throw new DexError("not_found", `${name} has no request that you can answer. \`dex hub requests\` lists them.`)
  const key = await currentKey()
  if (key !== undefined && keys.includes(key)) return key
  throw new DexError(
    "usage",
    `${name} asks for ${keys.join(", ")}. Say which: dex hub requests approve ${name} PROJECT`,
  )
}

/** The current project's name on the hub. Undefined if the project is not shared and has no git remote to name it after. */
async function currentProjectKey(dex: Dex): Promise<string | undefined> {
  const consent = consentFor(readHub(dex.home), dex.project, dex.machine.platform)
  return consent?.key ?? (await keyOfProject(dex.place))
}

async function requireProjectKey(dex: Dex): Promise<string> {
  const key = await currentProjectKey(dex)
  if (key !== undefined) return key
  throw new DexError(
    "usage",
    "Which project? Give its name on the hub, such as github.com/acme/api. `dex hub status` lists your projects.",
  )
}

const MAX_NAMED = 20
const MAX_CHANGES_EXAMINED = 2_000
const ANSWER_TIMEOUT_MS = 3_000

/**
 * Reports what is shared with whom, how much was sent, and what stays on this machine. Also asks the hub, and waits briefly for
 * its answer.
 */
async function hubStatus(dex: Dex) {
  const choices = readHub(dex.home)
  const { address, token, tenant, member, consents } = choices
  if (address === undefined) return { logged_in: false, shared: [] }
  const pushed = openPushedStore(dex)
  try {
    const counts = pushed.counts()
    const count = (key: string, state: PushState) =>
      counts.find((entry) => entry.project === key && entry.state === state)?.count ?? 0
    const privateProjects = new Set(
      (await (await dex.store()).projects()).filter((project) => project.private).map(({ path }) => path),
    )
    const { problem, succeeded_at, retry_at } = pushed.health()
    const hub = token === undefined ? undefined : await fetchHubState(address, token)
    const shownProblem = hub?.problem ?? problem
    return {
      address,
      tenant,
      member,
      logged_in: token !== undefined,
      reachable: hub && hub.problem === undefined,
      problem: shownProblem,
      notices: hub?.notices?.length ? hub.notices : undefined,
      requests_waiting: hub?.requests || undefined,
      stored: hub?.stored,
      shared: consents.map(({ project, key, what, visibility, since }) => ({
        project,
        key,
        what,
        visibility,
        since: since === undefined ? undefined : isoDate(since),
        sent: count(key, "sent"),
        refused: count(key, "refused"),
        deleted: count(key, "gone"),
        paused: privateProjects.has(project)
          ? "the project is private"
          : !isSharingAllowed(dex, project)
            ? "hub.share is false in its .dex.json or in your settings"
            : undefined,
      })),
      waiting: consents.length === 0 ? 0 : await waitingCount(await sharingOf(dex, () => choices, pushed)),
      leaving: pushed.inState("leaving", MAX_CHANGES_EXAMINED).length,
      held: pushed.held().map(formatRef),
      quarantined: hub?.quarantined
        ?.slice(0, MAX_NAMED)
        .map(({ source, id, at, rules }) => ({ id: formatRef({ source, id }), at, rules })),
      receipts: hub?.receipts?.slice(0, MAX_NAMED),
      refused: pushed.inState("refused", MAX_NAMED).map(({ ref, why = "" }) => ({ id: formatRef(ref), why })),
      pushed_at: succeeded_at === undefined ? undefined : isoDate(succeeded_at),
      next_try_at: retry_at !== undefined && retry_at > dex.now() ? isoDate(retry_at) : undefined,
    }
  } finally {
    pushed.close()
  }
}

/**
 * The number of shared conversations that the next push will examine. Counts at most MAX_CHANGES_EXAMINED changes of the feed.
 */
async function waitingCount(parts: SharingContext): Promise<number> {
  const page = await parts.store.changes(await feedToken(parts), MAX_CHANGES_EXAMINED)
  let count = 0
  for (const { ref } of page.changes) {
    const row = ref && (await parts.store.conversation(ref))
    if (!row || typeof (await sharingConsent(parts, row)) === "string") continue
    const pushed = parts.pushed.get(row.ref)
    if (pushed?.state !== "gone" && pushed?.state !== "leaving") count++
  }
  return count
}

type HubState = {
  problem?: string
  receipts?: HubReceipt[]
  quarantined?: HubQuarantined[]
  notices?: string[]
  requests?: number
  stored?: { yours?: HubStored; team?: HubStored }
}

async function fetchHubState(address: string, token: string): Promise<HubState> {
  try {
    return await useHub({ address, token, timeoutMs: ANSWER_TIMEOUT_MS, maxTries: 1 }, async (hub) => {
      const { notices = [], stored = {}, requests = 0 } = await hub.me()
      return {
        ...(await hub.mine()),
        notices: notices.flatMap(noticeLine),
        requests,
        stored: stored.yours || stored.team ? stored : undefined,
      }
    })
  } catch (error) {
    if (isHubError(error)) return { problem: error.message }
    throw error
  }
}

/** Notices of unknown types, which a newer hub may send, are left out. */
function noticeLine({ type, by, ref, at, reason }: WireNotice): string[] {
  if (type !== "break_glass") return []
  return [`${by} read ${ref} as an admin on ${at.slice(0, 10)}. Reason: ${reason}`]
}
