import { serveOrders } from "../subprocess/serve.ts"
import { readSections } from "./read-document.ts"

// The process that reads a collection. It receives files and returns redacted sections.

serveOrders(readSections)
