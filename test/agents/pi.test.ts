import { piConnector } from "../../packages/more-agents/src/pi.ts"
import { testConnector } from "./contract.ts"

testConnector(piConnector, "test/fixtures/pi")
