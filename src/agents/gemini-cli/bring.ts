import { basename, join, resolve } from "node:path"
import { lookAt } from "../../core/look-at.ts"
import { parseObject, record } from "../../core/record.ts"
import { type Bring, isPlainId, namesIn, newestFile, transcriptPieces } from "../kit/bring.ts"
import { type Report, textAt } from "../kit/files.ts"
import { geminiCliRoots } from "../registry.ts"

const MARKER = ".project_root"
const MAX_REGISTRY_BYTES = 16 << 20
const MAX_MARKER_BYTES = 64 << 10
/** Gemini CLI skips what it cannot read, too. */
const ignore: Report = () => {}

/**
 * `gemini --resume` looks only in the folder of the current project below `tmp`. Its name is in `projects.json`, and the folder itself
 * names its project in a marker. Gemini CLI adopts a folder with the right marker, so dex never changes `projects.json`.
 */
export const geminiCliBring: Bring = {
  plan: ({ id }, folder, machine) => {
    if (!/^[0-9a-f]{8}(?:-[0-9a-f]+)+$/i.test(id) || !isPlainId(id)) return undefined
    const root = geminiCliRoots(machine)[0]!
    const tmp = join(root, "tmp")
    const files = sessionFiles(tmp, id)
    const source = newestFile(files.map(({ path }) => path))
    const from = files.find(({ path }) => path === source)?.project
    if (from === undefined) return undefined
    const known = knownName(root, folder, machine.platform)
    if (known !== undefined && files.some(({ project }) => project === known)) return undefined
    const name = known ?? newName(root, folder)
    const marker = { path: join(name, MARKER), content: () => [normalPath(folder, machine.platform)] }
    const isMarked = known !== undefined && lookAt(join(tmp, known, MARKER)) !== undefined
    const copies = files
      .filter(({ project }) => project === from)
      .map(({ path }) => ({
        path: join(name, "chats", basename(path)),
        content: () => transcriptPieces(path),
      }))
    return { type: "files", root: tmp, files: isMarked ? copies : [marker, ...copies] }
  },
}

/** A session may have several files: Gemini CLI also writes one when it resumes it, and converts those of older versions. */
function sessionFiles(tmp: string, id: string): { project: string; path: string }[] {
  const fileName = new RegExp(`^session-.+-${id.slice(0, 8)}\\.jsonl?$`)
  return namesIn(tmp).flatMap((project) =>
    namesIn(join(tmp, project, "chats"))
      .filter((name) => fileName.test(name))
      .map((name) => ({ project, path: join(tmp, project, "chats", name) })),
  )
}

/** Finds the name of a folder's project as Gemini CLI does: in its list, unless the marker says otherwise, then by the markers. */
function knownName(root: string, folder: string, platform: NodeJS.Platform): string | undefined {
  const path = normalPath(folder, platform)
  const owner = (name: string) => {
    const text = textAt(join(root, "tmp", name, MARKER), MAX_MARKER_BYTES, ignore)
    return text === undefined ? undefined : normalPath(text.trim(), platform)
  }
  const listed = listedNames(root).get(path)
  if (listed !== undefined && isPlainName(listed) && [path, undefined].includes(owner(listed))) return listed
  return namesIn(join(root, "tmp")).find((name) => owner(name) === path)
}

function listedNames(root: string): Map<string, string> {
  const projects =
    record(parseObject(textAt(join(root, "projects.json"), MAX_REGISTRY_BYTES, ignore) ?? "")?.projects) ?? {}
  return new Map(Object.entries(projects).filter((entry): entry is [string, string] => typeof entry[1] === "string"))
}

/** Returns a name that no other project has, made from the folder's name. */
function newName(root: string, folder: string): string {
  const taken = new Set([
    ...namesIn(join(root, "tmp")),
    ...namesIn(join(root, "history")),
    ...listedNames(root).values(),
  ])
  const words = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
  const name = words.slice(0, 60) || "project"
  for (let n = 0; ; n++) {
    const candidate = n === 0 ? name : `${name}-${n}`
    if (!taken.has(candidate)) return candidate
  }
}

/** Whether a name from `projects.json` leads to a folder directly below `tmp`. */
function isPlainName(name: string): boolean {
  return /^[\w.-]+$/.test(name) && !/^\.+$/.test(name)
}

function normalPath(path: string, platform: NodeJS.Platform): string {
  const absolute = resolve(path)
  return platform === "win32" ? absolute.toLowerCase() : absolute
}
