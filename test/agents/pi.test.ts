import { piConnector } from "../../packages/more-agents/src/pi/connector.ts"
import { testConnector } from "./contract.ts"

testConnector(piConnector, "test/fixtures/pi")
