import { flag, type Infer, integer, listOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"
import { maxTokensField } from "../view-fields.ts"
import { collectionShape } from "./collections.ts"

const documentShape = object({
  id: text("The ref: pass it to show or get."),
  title: text(),
  date: text("When the file was last changed."),
  sections: integer(),
  estimated_tokens: integer(),
})

const input = object({
  words: listOf(
    text(),
    "add FOLDER|FILE|GIT-ADDRESS|npm:PACKAGE… (add alone: what the repository's .dex.json names), list [COLLECTION], outline DOCUMENT, show DOCUMENT[§SECTION], sync [COLLECTION…], or remove COLLECTION.",
  ),
  name: optional(text("With add: the collection's name.")),
  yes: optional(flag("With add: do not ask before adding the documents that the repository names.")),
  global: optional(flag("With add: make it available in every project, not only in this one.")),
  max_tokens: maxTokensField,
})
export type DocsInput = Infer<typeof input>

export const docs = defineTool({
  name: "docs",
  summary: "Add documents to search, and read them",
  input,
  output: object({
    collections: optional(listOf(collectionShape)),
    documents: optional(listOf(documentShape)),
    document: optional(object({ id: text(), title: text(), path: text("The file.") })),
    sections: optional(
      listOf(
        object({
          id: text("The ref."),
          headings: listOf(text(), "Headings from the document's title down to the section's own."),
          first_line: integer(),
          last_line: integer(),
          estimated_tokens: integer(),
          content: optional(text("With show: the section's text.")),
        }),
      ),
    ),
    synced: optional(
      listOf(
        object({
          name: text(),
          documents: integer("Documents that the collection has now."),
          changed: integer("Documents that are new or different."),
          removed: integer("Documents that were removed."),
          skipped: listOf(object({ path: text(), reason: text() }), "Files that were not read, and why."),
          complete: flag(),
        }),
      ),
    ),
    removed: optional(text("The collection that was removed.")),
    listed: optional(
      object(
        {
          agreed: flag("You agreed to this very list."),
          paths: listOf(text(), "Folders and files in the repository."),
          offered: listOf(text(), "Packages and addresses, which are never added with the list."),
          refused: listOf(object({ entry: text(), reason: text() })),
        },
        "The documents that the repository's .dex.json names.",
      ),
    ),
    asked: optional(flag("Nothing was added yet: call again with yes.")),
    estimated_tokens: optional(integer("With show: the estimated size of this answer.")),
    truncated: optional(text("What was left out to stay within max_tokens, and the call that continues.")),
  }),
  cli: { group: "Find", positional: "words", short: { y: "yes" }, example: "dex docs add ./docs" },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) =>
    (output.collections?.length !== 0 || output.listed !== undefined) &&
    output.documents?.length !== 0 &&
    output.sections?.length !== 0,
})
