import { readFileSync } from "node:fs"
import { join } from "node:path"
import { zip } from "./archive.mjs"

const FOLDER = "editors/vscode"
const FILES = ["package.json", "extension.js", "lines.js", "README.md"]
const CONTENT_TYPES = `<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension=".json" ContentType="application/json"/><Default Extension=".js" ContentType="application/javascript"/><Default Extension=".md" ContentType="text/markdown"/><Default Extension=".txt" ContentType="text/plain"/><Default Extension=".vsixmanifest" ContentType="text/xml"/></Types>
`

/**
 * The extension for VS Code, as its editors install it.
 * @param {string} root
 */
export function vsix(root) {
  const read = (/** @type {string} */ file) => readFileSync(join(root, file))
  const manifest = JSON.parse(read(`${FOLDER}/package.json`).toString())
  return zip([
    { path: "[Content_Types].xml", bytes: Buffer.from(CONTENT_TYPES) },
    { path: "extension.vsixmanifest", bytes: Buffer.from(vsixManifest(manifest)) },
    { path: "extension/LICENSE.txt", bytes: read("LICENSE") },
    ...FILES.map((file) => ({ path: `extension/${file}`, bytes: read(`${FOLDER}/${file}`) })),
  ])
}

/** @param {Record<string, any>} manifest */
function vsixManifest({ name, displayName, description, version, publisher, engines, categories, keywords, homepage }) {
  const escaped = (/** @type {string} */ text) =>
    text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;")
  const asset = (/** @type {string} */ type, /** @type {string} */ file) =>
    `<Asset Type="Microsoft.VisualStudio.${type}" Path="extension/${file}" Addressable="true"/>`
  return `<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
<Metadata>
<Identity Language="en-US" Id="${escaped(name)}" Version="${escaped(version)}" Publisher="${escaped(publisher)}"/>
<DisplayName>${escaped(displayName)}</DisplayName>
<Description xml:space="preserve">${escaped(description)}</Description>
<Tags>${escaped(keywords.join(","))}</Tags>
<Categories>${escaped(categories.join(","))}</Categories>
<GalleryFlags>Public</GalleryFlags>
<Properties>
<Property Id="Microsoft.VisualStudio.Code.Engine" Value="${escaped(engines.vscode)}"/>
<Property Id="Microsoft.VisualStudio.Services.Links.Learn" Value="${escaped(homepage)}"/>
</Properties>
<License>extension/LICENSE.txt</License>
</Metadata>
<Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
<Dependencies/>
<Assets>${asset("Code.Manifest", "package.json")}${asset("Services.Content.Details", "README.md")}${asset("Services.Content.License", "LICENSE.txt")}</Assets>
</PackageManifest>
`
}
