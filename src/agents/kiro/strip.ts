import { defined } from "../../core/defined.ts"
import { array, type RawRecord, record, records } from "../../core/record.ts"
import { withoutBulk } from "../kit/kept-text.ts"

/** Of a request only its model, its id and its end; of images how many there were. */
export function stripKiroTurn({ request_metadata, user, ...rest }: RawRecord): RawRecord {
  const [request, asked] = [record(request_metadata), record(user)]
  const { images, ...said } = asked ?? {}
  const { model_id, message_id, stream_end_timestamp_ms } = request ?? {}
  return withoutBulk({
    ...rest,
    ...defined({
      user: asked && { ...said, ...defined({ images: array(images).length > 0 ? array(images).length : undefined }) },
    }),
    ...defined({ request_metadata: request && { model_id, message_id, stream_end_timestamp_ms } }),
  })
}

export function stripKiroLine(line: RawRecord): RawRecord {
  const data = record(line.data)
  if (!Array.isArray(data?.content)) return withoutBulk(line)
  const content = records(data.content).map((block) => (block.kind === "image" ? { kind: "image" } : block))
  return withoutBulk({ ...line, data: { ...data, content } })
}
