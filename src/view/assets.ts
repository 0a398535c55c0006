import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { builtFolder } from "../render/html/page-style.ts"

/** The names that pages use; each has its content's hash in it, so that a browser may keep it for ever. */
export type Assets = { style: string; script: string; icon: string; get(name: string): Asset | undefined }
export type Asset = { type: string; bytes: Buffer<ArrayBuffer> }

const FILES = {
  style: ["view-style.css", "text/css; charset=utf-8"],
  script: ["view.js", "text/javascript; charset=utf-8"],
  icon: ["view-icon.svg", "image/svg+xml"],
} as const

export function loadAssets(): Assets {
  const found = new Map<string, Asset>()
  const name = (kind: keyof typeof FILES) => {
    const [file, type] = FILES[kind]
    const bytes = Buffer.from(readFileSync(new URL(file, builtFolder())))
    const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 12)
    const named = file.replace(".", `-${hash}.`)
    found.set(named, { type, bytes })
    return named
  }
  return { style: name("style"), script: name("script"), icon: name("icon"), get: (asked) => found.get(asked) }
}
