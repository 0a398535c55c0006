// A separate process that writes traces as fast as it can: <folder> <writer> <count> <limits>.
import { appendTrace } from "../../src/trace/append.ts"
import { idOf, rowOf, traceOf } from "./traces.ts"

const [dir, writer, count, limits] = process.argv.slice(2)
for (let n = 0; n < Number(count); n++) {
  const rows = Array.from({ length: 1 + (n % 7) }, (_, i) => rowOf(`claude_code:${writer}-${n}#${i + 1}`))
  appendTrace(dir!, traceOf({ trace_id: idOf(Number(writer), n), ranking: rows }), JSON.parse(limits!))
}
