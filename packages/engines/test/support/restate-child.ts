// A worker that takes one wake, says so, and never ends its drive: it is there to be killed. It says first where it listens.
// Usage: restate-child.ts INGRESS ADMIN NAME PORT
import { endpoint } from '@restatedev/restate-sdk'
import { connect } from '@restatedev/restate-sdk-clients'
import { restateEngine } from '../../src/restate.ts'

const [ingress = '', admin = '', name = '', port = ''] = process.argv.slice(2)
const engine = restateEngine({
  ingress: connect({ url: ingress }),
  listen: { port: Number(port) },
  register: { admin },
  endpoint: () => endpoint().setLogger(() => undefined),
  services: { name },
})
await engine.work(
  (wake) => {
    process.stdout.write(`${wake.runId}\n`)
    return new Promise(() => undefined)
  },
  { concurrency: 1 },
)
