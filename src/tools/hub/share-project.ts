import { type Consent, consentFor, type HubChoices, readHub, withConsent, writeHub } from "../../config/hub.ts"
import type { Kind } from "../../core/conversation.ts"
import { isoDate, parseDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { isFolder } from "../../core/look-at.ts"
import { isSamePath } from "../../core/path-key.ts"
import { formatRef } from "../../core/ref.ts"
import { repositoryRemotes } from "../../git/identity.ts"
import { useHub } from "../../hub-client/client.ts"
import { sumRemoved } from "../../hub-client/for-others.ts"
import { createOutgoing, DEFAULT_SHARED, SHAREABLE, type Shareable } from "../../hub-client/outgoing.ts"
import { keyOfProject, requireValidKey } from "../../hub-client/project-key.ts"
import { sharingConsent } from "../../hub-client/push.ts"
import { chunksOf } from "../../hub-client/wire.ts"
import { many } from "../../render/words.ts"
import type { ConversationRow, HistoryReader } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { conversationOf } from "../fields.ts"
import { folderNamed, folderOnDisk, projectNamed, resolveConversation } from "../resolve.ts"
import type { HubInput } from "./hub.ts"
import { tryPush } from "./push-now.ts"
import { isSharingAllowed, openPushedStore, type SharingParts, sharingOf } from "./sharing.ts"

/** The maximum number of characters of text that a preview shows. The text of further conversations is counted, but not shown. */
const MAX_PREVIEW_CHARS = 4 << 20

export async function shareProject(dex: Dex, named: string | undefined, input: HubInput) {
  const project = named === undefined ? dex.project : await projectToShare(dex, named)
  const choices = readHub(dex.home)
  await refuseUnshareable(dex, project)
  const { platform } = dex.machine
  const consent = await consentOf(dex, project, consentFor(choices, project, platform), input)
  const newChoices = withConsent(choices, project, consent, platform)
  const pushed = openPushedStore(dex)
  try {
    const parts = await sharingOf(dex, () => newChoices, pushed)
    const { leaving, staying } = await conversationsOf(parts, project)
    if (input.dry_run) return { preview: await previewOf(dex, parts, consent, leaving, input.session) }
    const summary = {
      project,
      key: consent.key,
      what: consent.what,
      visibility: consent.visibility,
      since: consent.since === undefined ? undefined : isoDate(consent.since),
      conversations: leaving.length,
      messages: leaving.reduce((sum, row) => sum + row.message_count, 0),
      text_bytes: leaving.reduce((sum, row) => sum + row.text_bytes, 0),
      staying,
    }
    const { address } = requireLogin(choices)
    if (!input.yes) {
      const other_key = input.name === undefined ? await otherKeyOnHub(dex, choices, consent) : undefined
      return { address, summary: { ...summary, other_key }, asked: true }
    }
    await recordConsent(choices, consent)
    writeHub(dex.home, withConsent(readHub(dex.home), project, consent, platform))
    return { address, summary, ...(await tryPush(dex)) }
  } finally {
    pushed.close()
  }
}

/** Finds the project to share. Its folder need not exist any longer, because its conversations are in the history. */
async function projectToShare(dex: Dex, named: string): Promise<string> {
  const folder = folderNamed(dex, named)
  if (isFolder(folder)) return projectNamed(dex, named)
  const knownProjects = await (await dex.store()).projects()
  return (
    knownProjects.find(({ path }) => isSamePath(path, folder, dex.machine.platform))?.path ?? projectNamed(dex, named)
  )
}

function requireLogin({ address, token }: HubChoices): { address: string; token: string } {
  if (address !== undefined && token !== undefined) return { address, token }
  throw new DexError("no_hub", `You are not logged in to a hub. Log in first: dex hub login ${address ?? "ADDRESS"}`)
}

/** Records the consent on the hub before it is saved here, because the hub decides whether the member may share. */
async function recordConsent(choices: HubChoices, { key, what }: Consent): Promise<void> {
  await useHub(requireLogin(choices), (hub) => hub.consent(key, what))
}

/** Throws if the folder is no project, or if the project is private or its settings forbid sharing. */
async function refuseUnshareable(dex: Dex, project: string): Promise<void> {
  const { platform, home } = dex.machine
  if (isSamePath(project, home, platform) || isSamePath(project, dex.home.dir, platform))
    throw new DexError(
      "not_a_project",
      "Your home folder is not a project, so it cannot be shared. Run this inside a project.",
    )
  const knownProjects = await (await dex.store()).projects()
  if (knownProjects.some((candidate) => candidate.private && isSamePath(candidate.path, project, platform)))
    throw new DexError(
      "private",
      `${project} is private, and private projects are never sent. To share it, first: dex private ${project} --off`,
    )
  if (!isSharingAllowed(dex, project))
    throw new DexError(
      "not_allowed",
      `${project} cannot be shared, because hub.share is false in its .dex.json or in your settings. Change that setting first.`,
    )
}

async function consentOf(dex: Dex, project: string, previous: Consent | undefined, input: HubInput): Promise<Consent> {
  const key =
    input.name === undefined
      ? (previous?.key ?? (await keyOfProject(folderOnDisk(dex, project))))
      : requireValidKey(input.name)
  if (key === undefined)
    throw new DexError(
      "no_key",
      `${project} has no git remote. Choose a name for it on the hub: dex hub share --name acme/api`,
    )
  const since = input.from === undefined ? previous?.since : parseDate(input.from, "from", dex.now())
  return {
    project,
    key,
    what: kindsToShare(previous?.what ?? DEFAULT_SHARED, input),
    visibility: input.visibility ?? previous?.visibility ?? "project",
    since,
    at: dex.now(),
  }
}

/** The name under which a teammate already shares this repository, if it is another of its remotes. */
async function otherKeyOnHub(dex: Dex, choices: HubChoices, { project, key }: Consent): Promise<string | undefined> {
  const { remotes } = await repositoryRemotes(folderOnDisk(dex, project))
  const others = remotes.filter((remote) => remote !== key)
  if (others.length === 0) return undefined
  const onHub = (await useHub(requireLogin(choices), (hub) => hub.me())).projects.map((one) => one.key)
  return onHub.includes(key) ? undefined : others.find((remote) => onHub.includes(remote))
}

function kindsToShare(previous: readonly string[], { with: more = [], without = [] }: HubInput): Shareable[] {
  const unknown = [...more, ...without].find((name) => !(SHAREABLE as readonly string[]).includes(name))
  if (unknown !== undefined)
    throw new DexError("usage", `"${unknown}" cannot be shared. You can share ${SHAREABLE.join(", ")}.`)
  const what = SHAREABLE.filter((name) => (previous.includes(name) || more.includes(name)) && !without.includes(name))
  if (what.length === 0) throw new DexError("usage", "Nothing is left to share. Leave out fewer kinds with --without.")
  return what
}

async function conversationsOf(
  parts: SharingParts,
  project: string,
): Promise<{ leaving: ConversationRow[]; staying: Record<string, number> }> {
  const leaving: ConversationRow[] = []
  const stayingByReason: Record<string, number> = {}
  for (const row of await rowsOf(parts.store, project)) {
    const consentOrReason = await sharingConsent(parts, row)
    if (typeof consentOrReason !== "string") leaving.push(row)
    else if (consentOrReason !== "kind") stayingByReason[consentOrReason] = (stayingByReason[consentOrReason] ?? 0) + 1
  }
  return { leaving, staying: stayingByReason }
}

async function rowsOf(store: HistoryReader, project: string): Promise<ConversationRow[]> {
  const kinds: Kind[] = ["person", "subagent", "automation", "note"]
  return (await store.list({ in_project: project, inside: project, kinds, limit: 1_000_000, offset: 0 })).rows
}

/** The exact bytes that would be sent, and a list of the secrets that were removed from them. */
async function previewOf(
  dex: Dex,
  parts: SharingParts,
  consent: Consent,
  leaving: ConversationRow[],
  session: string | undefined,
) {
  const previewed = session === undefined ? leaving : await conversationToPreview(dex, leaving, session)
  let charsLeft = MAX_PREVIEW_CHARS
  let hiddenCount = 0
  const conversations = []
  for (const [i, row] of previewed.entries()) {
    dex.signal?.throwIfAborted()
    dex.onProgress?.({ phase: "learning", done: i, total: previewed.length, bytes: i, bytesTotal: previewed.length })
    const { store } = parts
    const outgoing = createOutgoing(
      row,
      await store.messages(row.ref),
      await store.versions(row.ref),
      await parts.rulesFor(row, consent),
    )
    const chunks = [...chunksOf(outgoing.messages)]
    const head = JSON.stringify(outgoing.head)
    const lines = outgoing.messages.map((message) => JSON.stringify(message)).join("\n")
    const isShown = session !== undefined || head.length + lines.length <= charsLeft
    if (isShown) charsLeft -= head.length + lines.length
    else hiddenCount++
    conversations.push({
      id: formatRef(row.ref),
      title: outgoing.head.title?.text ?? conversationOf(row).title,
      messages: outgoing.messages.length,
      chunks: chunks.length,
      bytes: head.length + chunks.reduce((sum, { data }) => sum + data.length, 0),
      taken_out: outgoing.taken_out,
      left_out: outgoing.left_out,
      head: isShown ? head : undefined,
      lines: isShown ? lines : undefined,
    })
  }
  return {
    conversations,
    bytes: conversations.reduce((sum, conversation) => sum + conversation.bytes, 0),
    taken_out: sumRemoved(conversations.map(({ taken_out }) => taken_out)),
    truncated:
      hiddenCount > 0
        ? `The text of ${many(hiddenCount, "conversation")} is not shown, only counted. To see one: dex hub share --dry-run --session REF`
        : undefined,
  }
}

async function conversationToPreview(dex: Dex, leaving: ConversationRow[], typed: string): Promise<ConversationRow[]> {
  const { row } = await resolveConversation(dex, { id: typed })
  const name = formatRef(row.ref)
  const matching = leaving.filter(({ ref }) => formatRef(ref) === name)
  if (matching.length === 0)
    throw new DexError(
      "not_shared",
      `${name} would not be sent: it belongs to another project, is held back or is too old.`,
    )
  return matching
}

export async function unshareProject(dex: Dex, named: string | undefined, input: HubInput) {
  const choices = readHub(dex.home)
  const { platform } = dex.machine
  const consent =
    named === undefined
      ? consentFor(choices, dex.project, platform)
      : (choices.consents.find(({ key }) => key === named) ?? consentFor(choices, folderNamed(dex, named), platform))
  if (!consent) {
    const sharedProjects = choices.consents.map(({ project }) => project)
    throw new DexError(
      "not_shared",
      `${named ?? dex.project} is not shared. ${sharedProjects.length === 0 ? "No project is shared." : `Shared: ${sharedProjects.join(", ")}.`}`,
    )
  }
  const pushed = openPushedStore(dex)
  try {
    const store = await dex.store()
    const sentConversations = []
    for (const conversation of pushed.ofProject(consent.key)) {
      if (conversation.state === "gone" || conversation.rev === undefined) continue
      const row = await store.conversation(conversation.ref)
      if (!row?.project || isSamePath(row.project, consent.project, platform)) sentConversations.push(conversation)
    }
    if (input.forget && !input.yes) return { unshared: consent.project, on_hub: sentConversations.length, asked: true }
    // This is saved before the hub is contacted, so that nothing more is sent even if the hub does not answer.
    const newChoices = withConsent(choices, consent.project, undefined, platform)
    writeHub(dex.home, newChoices)
    if (!newChoices.consents.some(({ key }) => key === consent.key)) pushed.withdraw(consent.key, dex.now())
    if (input.forget)
      for (const conversation of sentConversations) pushed.put({ ...conversation, state: "leaving", at: dex.now() })
    return { unshared: consent.project, on_hub: sentConversations.length, ...(await tryPush(dex)) }
  } finally {
    pushed.close()
  }
}
