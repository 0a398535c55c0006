import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"

/**
 * The bill of materials of the npm package, in CycloneDX: the packages that npm installs with it, and those that are bundled in it.
 * It needs dist/. The same package always has the same bill.
 * @param {string} root
 */
export function sbomOf(root) {
  const read = (/** @type {string} */ file) => readFileSync(join(root, file), "utf8")
  const manifest = JSON.parse(read("package.json"))
  const { packages } = JSON.parse(read("package-lock.json"))
  const lockOf = (/** @type {string} */ name) => packages[`node_modules/${name}`]
  const installed = new Set(Object.keys(manifest.dependencies))
  for (const name of installed) for (const more of Object.keys(lockOf(name).dependencies ?? {})) installed.add(more)
  const bundled = [...read("dist/THIRD_PARTY_LICENSES.txt").matchAll(/^(\S+) (\d\S*) \((.+)\)$/gm)]
    .map(([, name, version, license]) => ({ name, version, license }))
    .filter(({ name }) => !installed.has(name))
  const components = [
    ...[...installed].map((name) => ({
      ...componentOf({ name, version: lockOf(name).version, license: lockOf(name).license }),
      hashes: [{ alg: "SHA-512", content: Buffer.from(lockOf(name).integrity.slice(7), "base64").toString("hex") }],
    })),
    ...bundled.map(componentOf),
  ].sort((a, b) => (a["bom-ref"] < b["bom-ref"] ? -1 : 1))
  const refs = new Map(components.map((component) => [component.name, component["bom-ref"]]))
  const component = { ...componentOf(manifest), type: "application", description: manifest.description }
  const dependsOn = (/** @type {string[]} */ names) => names.map((name) => refs.get(name)).sort()
  const dependencies = [
    {
      ref: component["bom-ref"],
      dependsOn: dependsOn([...Object.keys(manifest.dependencies), ...bundled.map(({ name }) => name)]),
    },
    ...[...installed].map((name) => ({
      ref: refs.get(name),
      dependsOn: dependsOn(Object.keys(lockOf(name).dependencies ?? {})),
    })),
  ]
  const content = {
    specVersion: "1.6",
    version: 1,
    metadata: { lifecycles: [{ phase: "build" }], component },
    components,
    dependencies,
  }
  return { bomFormat: "CycloneDX", serialNumber: `urn:uuid:${uuidOf(JSON.stringify(content))}`, ...content }
}

/** @param {{ name: string, version: string, license: string }} npmPackage */
function componentOf({ name, version, license }) {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`
  const licence = / (AND|OR|WITH) /.test(license) ? { expression: license } : { license: { id: license } }
  return { type: "library", "bom-ref": purl, name, version, purl, licenses: [licence] }
}

/** A UUID that follows from a text. @param {string} text */
function uuidOf(text) {
  const digits = createHash("sha256").update(text).digest("hex")
  return [digits.slice(0, 8), digits.slice(8, 12), `8${digits.slice(13, 16)}`, `8${digits.slice(17, 20)}`]
    .concat(digits.slice(20, 32))
    .join("-")
}
