import type { OutputOf } from "../../core/tool.ts"
import { paint, safeLine } from "../../render/terminal.ts"
import { many, shortPath } from "../../render/words.ts"
import type { project } from "../../tools/project/project.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"

type Output = OutputOf<typeof project>

export function printProject(output: Output, { terminal, home }: PrintContext): PrintedOutput {
  const { projects, joined, split, shared } = output
  const shown = (path: string) => safeLine(shortPath(path, home))
  if (split !== undefined)
    return {
      lines: [`${shown(split)} is a project of its own now.`],
      notes: [
        "dex will not join it with another project again. To undo this, run `dex project join` in the other one.",
      ],
    }
  const [current] = projects
  if (joined !== undefined)
    return {
      lines: [`${shown(joined)} belongs to ${shown(current!.path)} now, with all its conversations.`],
      notes: [
        ...(current!.private ? ["The joined project is private."] : []),
        ...(shared === undefined
          ? []
          : [`It is shared with your hub as ${safeLine(shared)}: what was joined will be sent, too.`]),
        `To undo this: dex project split ${shown(joined)}`,
      ],
    }
  return {
    lines: projects.flatMap((one) => [
      [
        paint(terminal, "bold", shown(one.path)),
        one.current && "(here)",
        one.private && "(private)",
        paint(terminal, "dim", [many(one.conversations, "conversation"), ...one.remotes.map(safeLine)].join(" · ")),
      ]
        .filter((part) => part)
        .join(" "),
      ...one.folders.map((folder) => `  ${shown(folder.path)}: ${paint(terminal, "dim", safeLine(folder.why))}`),
    ]),
    notes: [
      projects.length === 0
        ? "No project is known yet."
        : "To join a folder to this project: dex project join FOLDER. To separate it again: dex project split FOLDER",
    ],
  }
}
