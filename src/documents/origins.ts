import { createHash } from "node:crypto"
import { realpath, stat } from "node:fs/promises"
import { basename, dirname, join, resolve } from "node:path"
import { DexError } from "../core/error.ts"
import { readText } from "../core/read-file.ts"
import { formatOf } from "./document.ts"

/**
 * A source of documents. `only` is set if only one file in `root` is read. `name` is valid in a ref: letters, digits, `.`, `_`
 * and `-`.
 */
export type CollectionOrigin = {
  kind: "folder" | "file" | "git" | "npm"
  root: string
  name: string
  version?: string
  only?: string
}

export type CopyRepository = (
  url: string,
  folder: string,
  options: { update?: boolean | undefined; timeoutMs?: number | undefined; signal?: AbortSignal | undefined },
) => Promise<string>

type Options = {
  cwd: string
  /** The folder for copies of repositories. */
  cacheDir: string
  /** Copies a repository and returns its version. */
  copyRepository: CopyRepository
  /** Fetches the newest commit. Without it, an existing copy is used as it is. */
  update?: boolean
  timeoutMs?: number
  signal?: AbortSignal
}

/** Resolves the source of documents: a folder, a file, `npm:package` as installed, or the address of a git repository. */
export async function resolveOrigin(spec: string, options: Options): Promise<CollectionOrigin> {
  if (spec.startsWith("npm:")) return npmOrigin(spec.slice(4), options.cwd)
  const url = gitUrl(spec)
  if (url) return gitOrigin(url, options)
  const path = resolve(options.cwd, spec)
  const real = await realpath(path).catch(() => undefined)
  const found = real === undefined ? undefined : await stat(real)
  if (real === undefined || !found)
    throw new DexError("no_such_folder", `There is no ${path}. Name a folder, a file, npm:<package> or a git address.`)
  if (found.isDirectory()) return { kind: "folder", root: real, name: safeName(basename(path)) }
  if (!found.isFile() || !formatOf(real))
    throw new DexError("not_a_document", `${path} is not a document. dex reads Markdown, MDX, HTML and plain text.`)
  const name = safeName(basename(path).replace(/\.[^.]+$/, ""))
  return { kind: "file", root: dirname(real), name, only: basename(real) }
}

async function npmOrigin(wanted: string, cwd: string): Promise<CollectionOrigin> {
  const part = "[a-zA-Z0-9_~-][a-zA-Z0-9._~-]*"
  const name = new RegExp(`^(?:@${part}/)?${part}$`).exec(wanted)?.[0]
  if (name === undefined || name === "node_modules" || wanted.length > 214) {
    const hint = "Write npm:react or npm:@scope/name; the version is the one that is installed."
    throw new DexError("bad_package", `"${wanted}" is not the name of a package. ${hint}`)
  }
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const root = await realpath(join(folder, "node_modules", name)).catch(() => undefined)
    const manifest = root && manifestIn(root)
    if (root && manifest !== undefined) {
      const version = versionIn(manifest)
      return { kind: "npm", root, name: safeName(name), version: version || undefined }
    }
    if (dirname(folder) === folder) break
  }
  const message = `${name} is not installed in ${cwd} or above it. Run \`npm install ${name}\` there; dex downloads nothing.`
  throw new DexError("not_installed", message)
}

const MAX_BYTES = 4 << 20

function manifestIn(root: string): string | undefined {
  try {
    return readText(join(root, "package.json"), MAX_BYTES)
  } catch {
    return undefined // no package, or not readable
  }
}

function versionIn(manifest: string): string | undefined {
  try {
    const { version } = JSON.parse(manifest) as { version?: unknown }
    return typeof version === "string" ? version.slice(0, 100) : undefined
  } catch {
    return undefined // a damaged manifest; the documents can still be read
  }
}

/** Returns undefined for a path. Throws for addresses for which git would run commands or send secrets. */
function gitUrl(spec: string): string | undefined {
  if (/^[\w.-]+@[\w][\w.-]*:(?!\/\/)[^\0\s:][^\0\s]*$/.test(spec) && !spec.startsWith("-")) return spec
  const scheme = /^([a-z][a-z0-9+.-]*)(?:::|:\/\/)/i.exec(spec)
  if (!scheme) return undefined
  const kinds = "https://, ssh:// and file:// addresses, and git@host:path"
  if (!/^(https|ssh|file):\/\//.test(spec) || /[\0-\x20\x7f]/.test(spec))
    throw new DexError("bad_address", `"${spec.slice(0, 200)}" is not read. dex clones ${kinds}.`)
  const url = URL.parse(spec)
  if (!url || url.hostname.startsWith("-") || (url.protocol !== "file:" && !url.hostname))
    throw new DexError("bad_address", `"${spec.slice(0, 200)}" is not an address. dex clones ${kinds}.`)
  if (url.password || (url.protocol === "https:" && url.username)) {
    const hint = "Use ssh, or let git's credential helper keep it: dex would store it in plain text."
    throw new DexError("secret_in_address", `The address contains a password or token. ${hint}`)
  }
  return spec
}

async function gitOrigin(url: string, { cacheDir, copyRepository, ...options }: Options): Promise<CollectionOrigin> {
  const last =
    url
      .replace(/[?#].*$/, "")
      .replace(/\/+$/, "")
      .replace(/\.git$/, "")
      .split(/[/:]/)
      .at(-1) ?? ""
  const name = safeName(decoded(last))
  const id = createHash("sha256").update(url).digest("hex").slice(0, 10)
  const root = join(cacheDir, `${name}-${id}`)
  const version = await copyRepository(url, root, options)
  return { kind: "git", root: await realpath(root), name, version }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

function safeName(name: string): string {
  const safe = name.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[.-]+|[.-]+$/g, "")
  return safe.slice(0, 60) || "docs"
}
