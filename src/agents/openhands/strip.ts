import { defined } from "../../core/defined.ts"
import { type RawRecord, record, records, string } from "../../core/record.ts"
import { hunksBetween } from "../kit/hunks-between.ts"
import { digestOfDataUri, withoutBulk } from "../kit/kept-text.ts"

/** Without tools' descriptions, what only a provider can read, and image bytes; two versions of a file become what differs. */
export function stripOpenhandsEvent(event: RawRecord): RawRecord {
  const { tools: _, reasoning_details: __, responses_reasoning_item: ___, critic_result: ____, ...kept } = event
  const observation = record(kept.observation)
  const message = record(kept.llm_message)
  return withoutBulk({
    ...kept,
    ...defined({
      observation: observation && stripObservation(observation),
      llm_message: message && { ...message, content: contentOf(message.content) },
    }),
    ...defined({
      thinking_blocks: Array.isArray(kept.thinking_blocks)
        ? records(kept.thinking_blocks).map(stripThinking)
        : undefined,
    }),
  })
}

function stripObservation({ old_content, new_content, hunks: _, ...observation }: RawRecord): RawRecord {
  const path = string(observation.path)
  const [before, after] = [string(old_content) ?? "", string(new_content)]
  const changed = path !== undefined && after !== undefined && observation.command !== "view"
  return {
    ...observation,
    content: contentOf(observation.content),
    ...defined({ hunks: changed ? hunksBetween(path, before, after) : undefined }),
  }
}

function contentOf(content: unknown): unknown {
  return Array.isArray(content) ? records(content).flatMap(withoutImageBytes) : content
}

function withoutImageBytes(piece: RawRecord): RawRecord[] {
  if (!Array.isArray(piece.image_urls)) return [piece]
  return piece.image_urls.flatMap((url) => {
    const image = digestOfDataUri(string(url) ?? "")
    return image ? [{ type: "image", image }] : []
  })
}

function stripThinking({ signature: _, data: __, ...block }: RawRecord): RawRecord {
  return block
}
