import { serveOrders } from "../subprocess/serve.ts"
import { readSections } from "./read-document.ts"

// The reading half of a collection: files in, redacted sections out.

serveOrders(readSections)
