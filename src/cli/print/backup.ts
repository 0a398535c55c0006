import { grouped } from "../../core/format.ts"
import type { OutputOf } from "../../core/tool.ts"
import { safeLine, wrap } from "../../render/terminal.ts"
import { many, megabytes, seconds, shortPath } from "../../render/words.ts"
import type { backup, importHistory, restore } from "../../tools/backup/backup.ts"
import type { share } from "../../tools/share/share.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"

type BackupOutput = OutputOf<typeof backup>

export function printBackup(output: BackupOutput, { home, terminal }: PrintContext): PrintedOutput {
  const { file, bytes, conversations, messages, duration_ms } = output
  const contents = `${many(conversations, "conversation")}, ${many(messages, "message")}, ${megabytes(bytes)}`
  const line = `${safeLine(shortPath(file, home))}: ${contents}, written and read back in ${seconds(duration_ms)}.`
  return {
    lines: terminal.interactive ? wrap(line, terminal.columns) : [line],
    notes: ["It contains your conversations: keep it private."],
  }
}

type RestoreOutput = OutputOf<typeof restore>

export function printRestore(output: RestoreOutput, { home }: PrintContext): PrintedOutput {
  const { conversations, messages, kept, left_out = [] } = output
  return {
    lines: [`Restored ${many(conversations, "conversation")}, ${many(messages, "message")}.`],
    notes: [
      ...left_out.map((name) => `${name} in the backup is damaged or was changed by someone else, so it was left out.`),
      ...(kept ? [`The previous history was saved as ${safeLine(shortPath(kept, home))}.`] : []),
      "Run `dex sync` to make it searchable and to read newer conversations.",
    ],
  }
}

type ImportOutput = OutputOf<typeof importHistory>

export function printImport(output: ImportOutput, { home }: PrintContext): PrintedOutput {
  const { file, services, conversations, messages, forgotten, notes_left_out } = output
  const { left_out, projects, made_private, duration_ms } = output
  const notes = projects.map(({ from, to }) => `${safeLine(from)} is ${safeLine(shortPath(to, home))} on this machine.`)
  if (forgotten > 0)
    notes.push(
      `${many(forgotten, "conversation was", "conversations were")} left out, because you deleted them from this history.`,
    )
  if (notes_left_out > 0)
    notes.push(
      `${many(notes_left_out, "note was", "notes were")} left out, because agents trust your notes. If you wrote them: dex import ${safeLine(shortPath(file, home))} --with-notes`,
    )
  for (const { what, count } of left_out) {
    const reason = services === undefined ? ", because dex never writes such data" : ""
    notes.push(`Left out${reason}: ${safeLine(what)} (${grouped(count)}).`)
  }
  for (const path of made_private)
    notes.push(`${safeLine(shortPath(path, home))} is private in the imported history, and now also here.`)
  if (messages === 0) return { lines: [`Nothing new (${seconds(duration_ms)}).`], notes }
  return {
    lines: [
      `Imported ${many(messages, "new message")} of ${many(conversations, "conversation")} in ${seconds(duration_ms)}.`,
    ],
    notes,
  }
}

export function printShare(output: OutputOf<typeof share>, { home }: PrintContext): PrintedOutput {
  if (output.text !== undefined) return { lines: output.text.split("\n") }
  const removed = output.taken_out.map(
    ({ what, count, earlier }) => `  ${what}: ${count} ×${earlier ? " (already removed when dex read it)" : ""}`,
  )
  return {
    lines: [
      `Written: ${shortPath(output.file ?? "", home)} (${megabytes(output.bytes)}, ${many(output.messages, "message")})`,
      ...(removed.length === 0 ? ["No secret was found in it."] : ["Removed from it:", ...removed]),
    ],
    notes: ["Read it before you send it: dex finds many secrets, not all."],
  }
}
