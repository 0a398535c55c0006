import { join } from "node:path"
import { lookAt } from "../../core/look-at.ts"
import { type Bring, isPlainId, newestBelow, newestFile, transcriptPieces } from "../kit/bring.ts"
import { COWORK_FOLDER, claudeCodeRoots } from "../registry.ts"

/** Longer names end with a hash that is not known. */
const MAX_FOLDER_NAME = 200

/**
 * Up to 2.1.222, `claude --resume` looks only in the folder named after the current one. A copy of the transcript there is enough:
 * Claude Code does not compare the folder in its records.
 */
export const claudeCodeBring: Bring = {
  foundSince: "2.1.223",
  plan: ({ id }, folder, machine) => {
    const folderName = folder.replace(/[^a-zA-Z0-9]/g, "-")
    if (!isPlainId(id) || folderName.length > MAX_FOLDER_NAME) return undefined
    const [config] = claudeCodeRoots(machine)
    const root = join(config!, "projects")
    const path = join(folderName, `${id}.jsonl`)
    if (lookAt(join(root, path)) !== undefined) return undefined
    const roots = claudeCodeRoots(machine).filter((root) => !root.endsWith(COWORK_FOLDER))
    const source = newestFile(roots.flatMap((root) => newestBelow(join(root, "projects"), `${id}.jsonl`) ?? []))
    if (source === undefined) return undefined
    return {
      type: "files",
      root,
      files: [{ path, content: () => transcriptPieces(source) }],
    }
  },
}
