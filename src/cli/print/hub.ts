import { grouped } from "../../core/format.ts"
import type { OutputOf } from "../../core/tool.ts"
import { clip, paint, safe, safeLine } from "../../render/terminal.ts"
import { many, megabytes, shortPath, when } from "../../render/words.ts"
import type { hub } from "../../tools/hub/hub.ts"
import { type PrintContext, type PrintedOutput, shellQuote } from "./words.ts"

type Output = OutputOf<typeof hub>

const MAX_LISTED = 20
const MAX_RECEIPTS = 5

export function printHub(output: Output, context: PrintContext): PrintedOutput {
  if (output.preview) return printPreview(output.preview)
  if (output.shared) return printStatus(output, context)
  if (output.tokens) return printTokens(output.tokens)
  if (output.requests) return printRequests(output.requests)
  if (output.access) return { lines: [accessLine(output.access)] }
  if (output.members) return printMembers(output.members)
  if (output.revoked !== undefined) return { lines: [`Token ${output.revoked} is revoked.`], notes: [] }
  if (output.logged_out !== undefined) return printLoggedOut(output)
  if (output.held) return printHeld(output)
  if (output.unshared !== undefined) return printUnshared(output, context)
  const { summary } = output
  const head = summary
    ? [`${shortPath(safeLine(summary.project), context.home)} is shared as ${safeLine(summary.key)}.`]
    : []
  return withPushResult(head, output)
}

/** The lines that are shown before the question: what would be sent, who could read it, and what would not be sent. */
export function sharingLines(summary: NonNullable<Output["summary"]>, address: string, columns: number): string[] {
  const { key, other_key, what, visibility, since, conversations, messages, text_bytes, staying } = summary
  const notShared = ["thinking", "images"].filter((name) => !what.includes(name))
  const readers = {
    private: "only you can read it there",
    project: "members of the project can read it",
    org: "everyone in the organisation can read it",
  }
  const stayingTexts = Object.entries(staying).map(([why, count]) => `${many(count, "conversation")} (${why})`)
  return [
    `To ${safeLine(address)}, as ${safeLine(key)}: ${readers[visibility as keyof typeof readers]}.`,
    ...(other_key === undefined
      ? []
      : [
          `  this repository is on the hub as ${safeLine(other_key)}; to add to that: dex hub share --name ${shellQuote(safeLine(other_key))}`,
        ]),
    `  ${many(conversations, "conversation")}, ${many(messages, "message")}, ${megabytes(text_bytes)} of text${since ? `, since ${since.slice(0, 10)}` : ""}`,
    `  what: ${what.join(", ")}${notShared.length > 0 ? ` (not ${notShared.join(" or ")})` : ""}`,
    ...(stayingTexts.length > 0 ? [`  not sent: ${stayingTexts.join(", ")}`] : []),
    "  redacted again by the newest rules; paths relative to the project; your home folder and name masked",
    "To see exactly what would be sent: dex hub share --dry-run",
  ].map((line) => clip(line, columns))
}

function printPreview({ conversations, bytes, taken_out, truncated }: NonNullable<Output["preview"]>): PrintedOutput {
  const lines = conversations.flatMap((conversation) => {
    const omitted = Object.entries(conversation.left_out).map(([what, count]) => `${what} ${count} ×`)
    return [
      `${safeLine(conversation.id)}  ${safeLine(conversation.title)}`,
      `  ${many(conversation.messages, "message")}, ${grouped(conversation.bytes)} bytes in ${many(conversation.chunks, "chunk")}`,
      ...(conversation.taken_out.length > 0 ? [`  removed: ${removedTexts(conversation.taken_out).join(", ")}`] : []),
      ...(omitted.length > 0 ? [`  left out: ${omitted.join(", ")}`] : []),
      ...(conversation.head === undefined
        ? []
        : [safe(conversation.head), ...safe(conversation.lines ?? "").split("\n")]),
      "",
    ]
  })
  return {
    lines,
    notes: [
      `${many(conversations.length, "conversation")}, ${megabytes(bytes)} as they would be sent. Nothing was sent.`,
      ...(taken_out.length === 0 ? [] : [`Removed: ${removedTexts(taken_out).join(", ")}.`]),
      ...(truncated === undefined ? [] : [truncated]),
      "Read it before you share it: dex finds many secrets, not all.",
    ],
  }
}

function removedTexts(list: NonNullable<Output["preview"]>["taken_out"]): string[] {
  return list.map(
    ({ what, count, earlier }) => `${safeLine(what)} ${count} ×${earlier ? " (already removed when dex read it)" : ""}`,
  )
}

function printStatus(output: Output, { terminal, home }: PrintContext): PrintedOutput {
  if (output.address === undefined)
    return {
      lines: ["No hub is set up, and nothing leaves this machine."],
      notes: ["Log in to one: dex hub login ADDRESS"],
    }
  const account = output.logged_in
    ? `as ${safeLine(output.member ?? "")} (${safeLine(output.tenant ?? "")})`
    : "logged out"
  const projectLines = (output.shared ?? []).flatMap((project) => [
    `${paint(terminal, "cyan", shortPath(safeLine(project.project), home))}  as ${safeLine(project.key)}, ${project.visibility}: ${project.what.join(", ")}${project.since ? `, since ${project.since.slice(0, 10)}` : ""}`,
    `  ${many(project.sent, "conversation")} sent${project.refused > 0 ? `, ${project.refused} refused` : ""}${project.deleted > 0 ? `, ${project.deleted} deleted there` : ""}`,
    ...(project.paused === undefined ? [] : [`  paused: ${project.paused}`]),
  ])
  const refusedLines = (output.refused ?? [])
    .slice(0, MAX_LISTED)
    .map(({ id, why }) => clip(`  ${safeLine(id)}  ${safeLine(why)}`, terminal.columns))
  const hiddenLines = (output.quarantined ?? [])
    .slice(0, MAX_LISTED)
    .map(({ id, rules }) => clip(safeLine(`  ${id}  ${rules.join(", ")}`), terminal.columns))
  const receipts = (output.receipts ?? [])
    .slice(0, MAX_RECEIPTS)
    .map((receipt) => clip(receiptLine(receipt), terminal.columns))
  const waitingTexts = [
    ...(output.waiting ? [`${many(output.waiting, "conversation")} waiting to be sent`] : []),
    ...(output.leaving ? [`${many(output.leaving, "conversation")} waiting to be deleted there`] : []),
    ...(output.held?.length ? [`${many(output.held.length, "conversation")} held back`] : []),
  ]
  return {
    lines: [
      `${safeLine(output.address)}  ${account}`,
      ...(projectLines.length === 0 ? ["Nothing is shared."] : projectLines),
      ...(waitingTexts.length === 0 ? [] : [`${waitingTexts.join(", ")}.`]),
      ...(output.requests_waiting
        ? [`${many(output.requests_waiting, "request is", "requests are")} waiting for your answer: dex hub requests`]
        : []),
      ...storedLines(output.stored),
      ...(refusedLines.length === 0 ? [] : ["Refused by the hub:", ...refusedLines]),
      ...(hiddenLines.length === 0
        ? []
        : ["Hidden from everyone else on the hub, each with the rules that found a secret:", ...hiddenLines]),
      ...(receipts.length === 0 ? [] : ["Deleted on the hub:", ...receipts]),
      ...(output.pushed_at === undefined ? [] : [`The last complete push was ${when(output.pushed_at)}.`]),
      ...(output.notices ?? []).map(safeLine),
    ],
    notes: [
      ...(output.problem === undefined ? [] : [safeLine(output.problem)]),
      ...(hiddenLines.length === 0
        ? []
        : ["A newer version of dex will send them again without the secret. Replace the secret in any case."]),
      ...(output.next_try_at === undefined ? [] : ["dex will try again automatically. To try now: dex hub push"]),
      ...(projectLines.length === 0 ? ["Share a project: run `dex hub share` inside it."] : []),
    ],
  }
}

function storedLines({ yours, team }: NonNullable<Output["stored"]> = {}): string[] {
  const quotaText = ({ bytes, quota_bytes }: NonNullable<typeof yours>) =>
    `${megabytes(bytes)} of ${megabytes(quota_bytes)}`
  return [
    ...(yours ? [`You use ${quotaText(yours)} on the hub.`] : []),
    ...(team ? [`Your team uses ${quotaText(team)} on the hub.`] : []),
  ]
}

function receiptLine({
  at,
  conversations,
  why,
  by,
  key_gone_at,
  words_gone_at,
  words_wait_for,
}: NonNullable<Output["receipts"]>[number]): string {
  const cause = by === undefined ? why : `by ${by}`
  const wordsText = words_wait_for
    ? `; its hashed words may still be on the disks of ${words_wait_for.join(", ")}`
    : words_gone_at
      ? `; its hashed words are on no disk of OpenSearch since ${when(words_gone_at)}`
      : ""
  const fileText =
    key_gone_at === undefined
      ? "it will soon be deleted from the files"
      : `it was deleted from the files ${when(key_gone_at)}`
  return safeLine(
    `  ${when(at)}  ${many(conversations, "conversation")} (${cause}): encryption key deleted from the tables; ${fileText}${wordsText}`,
  )
}

function printRequests(requests: NonNullable<Output["requests"]>): PrintedOutput {
  if (requests.length === 0) return { lines: ["Nobody is waiting for your answer."] }
  return {
    lines: requests.map(({ member, project, at }) => [member, project, when(at)].map(safeLine).join("  ")),
    notes: ["To grant access: dex hub requests approve NAME. To deny it: dex hub requests deny NAME"],
  }
}

function accessLine({ member, project, level }: NonNullable<Output["access"]>): string {
  const accessTexts: Record<string, string> = {
    read: `can now read ${project}.`,
    write: `can now read and push to ${project}.`,
    own: `can now read and push to ${project}, and decides who else can.`,
    none: `no longer has access to ${project}.`,
  }
  return safeLine(
    `${member} ${level === undefined ? `does not get access to ${project}.` : (accessTexts[level] ?? `has access to ${project}.`)}`,
  )
}

function printMembers(members: NonNullable<Output["members"]>): PrintedOutput {
  return {
    lines: members.map(({ name, level, group_level }) =>
      [name, `${level}${group_level === undefined ? "" : ` (${group_level} through a group)`}`]
        .map(safeLine)
        .join("  "),
    ),
  }
}

function printTokens(tokens: NonNullable<Output["tokens"]>): PrintedOutput {
  const lines = tokens.map(({ id, name, kind, scopes, created_at, expires_at, last_used_at, revoked_at }) => {
    const expiryText = revoked_at ? "revoked" : expires_at ? `until ${when(expires_at)}` : "does not expire"
    const usageText = last_used_at ? `used ${last_used_at.slice(0, 10)}` : "not used"
    return safeLine(
      `${id}  ${name} (${kind}): ${scopes.join(", ")}; created ${created_at.slice(0, 10)}, ${usageText}, ${expiryText}`,
    )
  })
  return { lines, notes: ["To revoke one: dex hub tokens revoke ID"] }
}

function printHeld({ held = [], on_hub, ...output }: Output): PrintedOutput {
  if (on_hub === undefined)
    return {
      lines: held.map(safeLine),
      notes: [
        held.length === 0
          ? "No conversation is held back."
          : `${many(held.length, "conversation")} held back. To send one anyway: dex hub hold REF --off`,
      ],
    }
  const head = [`Held back: ${held.map(safeLine).join(", ")}`]
  if (output.pushed || output.problem !== undefined) return withPushResult(head, output)
  return {
    lines: head,
    notes:
      on_hub > 0 ? ["It was sent before and is still on the hub. To delete it there: dex hub hold REF --forget"] : [],
  }
}

function printUnshared(output: Output, { home }: PrintContext): PrintedOutput {
  const head = [`${shortPath(safeLine(output.unshared ?? ""), home)} is no longer shared.`]
  const outcome = withPushResult(head, output)
  const stayingCount = (output.on_hub ?? 0) - (output.pushed?.removed ?? 0)
  const isOnHub = stayingCount > 0 && output.problem === undefined
  return isOnHub
    ? {
        ...outcome,
        notes: [
          ...(outcome.notes ?? []),
          `${many(stayingCount, "conversation of the project is", "conversations of the project are")} still on the hub. \`dex hub unshare --forget\` deletes them.`,
        ],
      }
    : outcome
}

function printLoggedOut({ logged_out, address }: Output): PrintedOutput {
  if (!logged_out) return { lines: ["You were not logged in."] }
  return {
    lines: [
      `Logged out of ${safeLine(address ?? "the hub")}. The token was deleted from this machine. Nothing more will be sent.`,
    ],
    notes: [
      "dex remembers what you share, in case you log in again. If somebody else may have the token, revoke it on the hub.",
    ],
  }
}

function withPushResult(head: string[], { pushed, problem }: Pick<Output, "pushed" | "problem">): PrintedOutput {
  if (!pushed) return { lines: head, problem: problem === undefined ? undefined : safeLine(problem) }
  const { busy, sent, removed, refused, bytes, complete } = pushed
  if (busy) return { lines: head, notes: ["Another dex process is sending right now."] }
  const results = [
    sent > 0 ? `${many(sent, "conversation")} sent (${megabytes(bytes)})` : "Nothing new to send",
    ...(removed > 0 ? [`${many(removed, "conversation")} deleted on the hub`] : []),
    ...(refused > 0 ? [`${many(refused, "conversation")} refused by the hub. Run \`dex hub status\` to see why`] : []),
  ]
  return {
    lines: [...head, `${results.join(", ")}.`],
    notes: complete ? [] : ["Not everything was sent. The next push continues: dex hub push"],
  }
}
