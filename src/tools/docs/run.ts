import { join } from "node:path"
import { agreeToDocuments } from "../../config/projects.ts"
import { isoDate } from "../../core/dates.ts"
import { withoutUndefined } from "../../core/defined.ts"
import { DexError, isDexError } from "../../core/error.ts"
import { messageText, messageTokens } from "../../core/format.ts"
import { formatRef } from "../../core/ref.ts"
import { resolveOrigin } from "../../documents/origins.ts"
import { copyRepository } from "../../git/clone.ts"
import { budgetTooSmall, fitItems } from "../../render/budget.ts"
import { many } from "../../render/words.ts"
import type { Collection, StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { resolveRef } from "../resolve.ts"
import { commandLine } from "../view.ts"
import { describeCollections, requireCollections } from "./collections.ts"
import type { DocsInput } from "./docs.ts"
import { type ListedDocuments, listedDocuments, listedName } from "./listed.ts"
import { sectionMarkOf, withSubsections } from "./sections.ts"
import { repositoriesOf, syncCollections } from "./sync-collections.ts"

const USAGE =
  "`dex docs` takes add FOLDER|FILE|GIT-ADDRESS|npm:PACKAGE…, list [COLLECTION], outline DOCUMENT, show DOCUMENT, sync [COLLECTION…] or remove COLLECTION."
const COLLECTION_NAME = /^[\p{L}\p{N}][\p{L}\p{N}._-]{0,63}$/u
const MAX_LISTED = 100_000

export async function run(dex: Dex, input: DocsInput) {
  const [action = "list", ...words] = input.words
  if (action === "add") return addCollections(dex, words, input)
  if (action === "list" && words.length === 0)
    return { collections: await describeCollections(dex), ...shownList(listedDocuments(dex)) }
  if (action === "list") return listDocuments(dex, words[0]!)
  if (action === "outline")
    return outlineDocument(dex, requireOne(words, "Which document? dex docs outline react/hooks.md"))
  if (action === "show")
    return showDocument(dex, requireOne(words, "Which document? dex docs show react/hooks.md"), input.max_tokens)
  if (action === "sync") return { synced: await syncCollections(dex, { names: words, fetch: true }) }
  if (action === "remove")
    return removeCollection(dex, requireOne(words, "Which collection? `dex docs list` shows them."))
  throw new DexError("usage", `There is no \`dex docs ${action}\`. ${USAGE}`)
}

function requireOne(words: string[], question: string): string {
  if (words.length === 0) throw new DexError("usage", question)
  return words.join(" ")
}

/** Each word is a separate location, so a path with a space needs quotation marks. */
async function addCollections(dex: Dex, specs: string[], input: DocsInput) {
  const listed = specs.length === 0 ? listedDocuments(dex) : undefined
  if (listed) return addListed(dex, listed, input)
  requireOne(specs, "What should be added? dex docs add ./docs")
  if (specs.length > 1 && input.name !== undefined)
    throw new DexError(
      "usage",
      "--name works with a single collection. Add the collections one by one, or put a path with spaces in quotation marks.",
    )
  const names: string[] = []
  for (const spec of specs) names.push(await addCollection(dex, spec, input))
  return { synced: await syncCollections(dex, { names }) }
}

/** Adds the documents that the repository names, if the person agrees to this list. */
async function addListed(dex: Dex, listed: ListedDocuments, input: DocsInput) {
  if (listed.paths.length === 0 || !input.yes)
    return { ...shownList(listed), asked: listed.paths.length > 0 || undefined }
  const names: string[] = []
  const refused = [...listed.refused]
  for (const path of listed.paths)
    try {
      const name = listedName(listed.folder, path).replace(/[^\p{L}\p{N}._-]+/gu, "-")
      names.push(await addCollection(dex, join(listed.folder, path), { ...input, name, global: undefined }))
    } catch (error) {
      if (!isDexError(error)) throw error
      refused.push({ entry: path, reason: error.message })
    }
  agreeToDocuments(dex.home, listed.folder, { list: listed.list, collections: names })
  const synced = names.length === 0 ? [] : await syncCollections(dex, { names })
  return { synced, ...shownList({ ...listed, agreed: true, refused }) }
}

function shownList(listed: ListedDocuments | undefined) {
  if (!listed) return {}
  const { agreed, paths, offered, refused } = listed
  return { listed: { agreed, paths, offered, refused } }
}

/** Saves the collection and returns its name. */
async function addCollection(dex: Dex, spec: string, input: DocsInput): Promise<string> {
  const store = await dex.storeToWrite()
  const { redactName } = await import("../../redact/redact.ts")
  if (/^[a-z][a-z0-9+.-]*:\/\/|^[\w.-]+@/i.test(spec) && redactName(spec) !== spec)
    throw new DexError(
      "secret_in_address",
      "The address contains a password or token, and dex would store it in plain text. Use ssh, or let git's credential helper keep it.",
    )
  if (input.name !== undefined && redactName(input.name) !== input.name)
    throw new DexError("bad_name", "The collection's name contains a secret. Choose another one with --name.")
  const origin = await resolveOrigin(spec, { cwd: dex.cwd, cacheDir: repositoriesOf(dex), copyRepository })
  // The name of a folder can contain a secret, so the collection gets the redacted name.
  const name =
    input.name ??
    redactName(origin.name)
      .replace(/[[\]:]+/g, "-")
      .replace(/^[.-]+|[.-]+$/g, "")
  if (!COLLECTION_NAME.test(name))
    throw new DexError(
      "bad_name",
      `"${name}" cannot be a collection's name. Use letters, digits, dots and dashes: dex docs add ${spec} --name docs`,
    )
  const existing = (await store.collections()).find((collection) => collection.name === name)
  const { storedName } = await import("../../ingest/read-document.ts")
  const only = origin.only === undefined ? undefined : storedName(origin.only)
  if (existing && (existing.root !== origin.root || (existing.only !== origin.only && existing.only !== only)))
    throw new DexError(
      "name_taken",
      `The collection "${name}" already exists, with documents from ${existing.origin}. Choose another name: dex docs add ${spec} --name ${name}-2`,
    )
  const { kind, root, version } = origin
  const collection: Collection = {
    name,
    kind,
    origin: redactName(spec),
    root,
    ...withoutUndefined({ only, version, project: input.global ? undefined : dex.project }),
    added_at: existing?.added_at ?? dex.now(),
    problems: [],
  }
  await store.saveCollection(collection)
  return name
}

async function removeCollection(dex: Dex, name: string) {
  const store = await dex.storeToWrite()
  await requireCollections(dex, [name])
  await store.removeCollection(name)
  const index = await dex.indexToWrite()
  if (index) {
    await index.follow(store)
    index.checkpoint()
  }
  return { removed: name }
}

async function listDocuments(dex: Dex, name: string) {
  const store = await dex.store()
  const collections = await requireCollections(dex, [name])
  const { rows } = await store.list({ collections, inside: dex.project, limit: MAX_LISTED, offset: 0 })
  const documents = rows.map(({ ref, title, ended_at, message_count, estimated_tokens }) => ({
    id: formatRef(ref),
    title: title?.text ?? "",
    date: ended_at === undefined ? "" : isoDate(ended_at),
    sections: message_count,
    estimated_tokens,
  }))
  return { documents: documents.sort((a, b) => (a.id < b.id ? -1 : 1)) }
}

async function outlineDocument(dex: Dex, typed: string) {
  const { head, messages } = await openDocument(dex, typed)
  return { document: head, sections: messages.map((message) => sectionOf(head.id, message)) }
}

/** Returns a complete document, or a section with its subsections, as far as it fits into `maxTokens`. */
async function showDocument(dex: Dex, typed: string, maxTokens: number | undefined) {
  const { head, messages, number } = await openDocument(dex, typed)
  const selected = number === undefined ? messages : withSubsections(messages, number)
  const sections = selected.map((message) => ({
    ...sectionOf(head.id, message),
    content: messageText(message, "full"),
  }))
  const build = (count: number) => {
    const next = sections[count]
    return {
      document: head,
      sections: sections.slice(0, count),
      truncated:
        next &&
        `${many(sections.length - count, "section")} left out. Continue: ${commandLine("docs", ["show", next.id])}`,
    }
  }
  const fit = fitItems(sections.length, build, maxTokens, (i) => sections[i]!.content.length)
  if (!fit || (fit.itemCount === 0 && sections.length > 0)) throw budgetTooSmall(maxTokens!, build(1))
  return fit.answer
}

async function openDocument(dex: Dex, typed: string) {
  const { row, number } = await resolveRef(
    dex,
    typed.startsWith("docs:") || /^\d+$/.test(typed) ? typed : `docs:${typed}`,
  )
  const head = { id: formatRef(row.ref), title: row.title?.text ?? "", path: row.path }
  const messages = await (await dex.store()).messages(row.ref)
  return { head, messages, number }
}

function sectionOf(id: string, message: StoredMessage) {
  const mark = sectionMarkOf(message)
  return {
    id: mark?.name ? `${id}§${mark.name}` : `${id}#${message.number}`,
    headings: mark?.headings ?? [],
    first_line: mark?.first_line ?? 0,
    last_line: mark?.last_line ?? 0,
    estimated_tokens: messageTokens(message, "stripped"),
  }
}
