// The extension for VS Code: who wrote the current line, in a hover too; why; and the conversation itself.
const { dirname } = require("node:path")
const vscode = require("vscode")
const { askDex, authorsIn, isCommit, isRef } = require("./lines.js")

/** The time after which a cursor that does not move is asked about. */
const IDLE_MS = 300
const SCHEME = "dexctx"

/** The authors of a file's lines, as long as the file does not change. @type {Map<string, { version: number, authors: Promise<Map<number, object>> }>} */
const known = new Map()
/** The texts of the pages that were opened. @type {Map<string, string>} */
const pages = new Map()

exports.activate = (context) => {
  const atLine = vscode.window.createTextEditorDecorationType({
    after: { color: new vscode.ThemeColor("editorCodeLens.foreground"), margin: "0 0 0 3em", fontStyle: "italic" },
  })
  let timer
  const later = () => {
    clearTimeout(timer)
    timer = setTimeout(() => showAuthor(atLine), IDLE_MS)
  }
  const forget = (document) => known.delete(document.uri.toString())
  context.subscriptions.push(
    atLine,
    { dispose: () => clearTimeout(timer) },
    vscode.window.onDidChangeTextEditorSelection(later),
    vscode.window.onDidChangeActiveTextEditor(later),
    vscode.workspace.onDidChangeTextDocument(later),
    vscode.workspace.onDidSaveTextDocument((document) => {
      forget(document)
      later()
    }),
    vscode.workspace.onDidCloseTextDocument((document) => {
      forget(document)
      pages.delete(document.uri.toString())
    }),
    vscode.languages.registerHoverProvider({ scheme: "file" }, { provideHover }),
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, {
      provideTextDocumentContent: (uri) => pages.get(uri.toString()) ?? "",
    }),
    vscode.commands.registerCommand("dexctx.whyLine", whyLine),
    vscode.commands.registerCommand("dexctx.whyCommit", whyCommit),
    vscode.commands.registerCommand("dexctx.openConversation", openConversation),
  )
  later()
}

const setting = (name) => vscode.workspace.getConfiguration("dexctx").get(name)
const ask = (args, cwd) => askDex(setting("path") || "dex", args, cwd)
const folderOf = (document) => dirname(document.uri.fsPath)

/** The author of a line of a saved file; undefined if there is none, or if dex cannot say. */
async function authorAt(document, line) {
  if (document.uri.scheme !== "file" || document.isDirty) return undefined
  const key = document.uri.toString()
  let entry = known.get(key)
  if (entry?.version !== document.version) {
    const asked = ask(["blame", document.uri.fsPath, "--json"], folderOf(document)).then(authorsIn)
    entry = { version: document.version, authors: asked.catch(() => new Map()) }
    known.set(key, entry)
  }
  return (await entry.authors).get(line + 1)
}

async function showAuthor(atLine) {
  const editor = vscode.window.activeTextEditor
  if (!editor) return
  const { line } = editor.selection.active
  const author = setting("line") ? await authorAt(editor.document, line) : undefined
  const isStillThere = editor === vscode.window.activeTextEditor && line === editor.selection.active.line
  if (!isStillThere) return
  const end = editor.document.lineAt(Math.min(line, editor.document.lineCount - 1)).range.end
  const range = new vscode.Range(end, end)
  editor.setDecorations(atLine, author ? [{ range, renderOptions: { after: { contentText: author.label } } }] : [])
}

/** Text from conversations is added as text, never as Markdown; only our own two commands can be links. */
async function provideHover(document, position) {
  const author = setting("hover") ? await authorAt(document, position.line) : undefined
  if (!author) return undefined
  const page = new vscode.MarkdownString()
  page.isTrusted = { enabledCommands: ["dexctx.openConversation", "dexctx.whyLine"] }
  for (const detail of author.details) {
    page.appendText(detail)
    page.appendMarkdown("\n\n")
  }
  const link = (command, ...args) => `command:dexctx.${command}?${encodeURIComponent(JSON.stringify(args))}`
  const why = link("whyLine", document.uri.fsPath, position.line + 1)
  page.appendMarkdown(`[Open the conversation](${link("openConversation", author.ref)}) · [Why](${why})`)
  return new vscode.Hover(page)
}

async function whyLine(path, line) {
  const editor = vscode.window.activeTextEditor
  const file = typeof path === "string" ? path : editor?.document.uri.fsPath
  const number = Number.isInteger(line) ? line : (editor?.selection.active.line ?? 0) + 1
  if (file) await openPage(`Why line ${number}`, ["why", `${file}:${number}`], dirname(file))
}

async function whyCommit() {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath
  const commit = await vscode.window.showInputBox({ prompt: "A commit, for example HEAD", value: "HEAD" })
  if (!folder || !commit) return
  if (isCommit(commit)) await openPage(`Why ${commit}`, ["why", commit], folder)
  else vscode.window.showErrorMessage("That is not a commit.")
}

async function openConversation(ref) {
  const editor = vscode.window.activeTextEditor
  const author = ref === undefined && editor ? await authorAt(editor.document, editor.selection.active.line) : undefined
  const named = ref ?? author?.ref
  if (!isRef(named)) return vscode.window.showInformationMessage("dex knows no conversation that wrote this line.")
  const cwd = editor?.document.uri.scheme === "file" ? folderOf(editor.document) : process.cwd()
  await openPage("Conversation", ["show", named], cwd)
}

/** Shows what dex prints in a page that cannot be edited. */
async function openPage(title, args, cwd) {
  try {
    const text = await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: "dex" }, () =>
      ask(args, cwd),
    )
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${title}`, query: args.join(" ") })
    pages.set(uri.toString(), text || "Nothing was found.")
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: true })
  } catch (error) {
    vscode.window.showErrorMessage(error.message)
  }
}
