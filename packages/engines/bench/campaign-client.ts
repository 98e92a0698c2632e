// A client of the campaign that dies between the command, which is on record, and the wake that should follow.
// Usage: campaign-client.ts TASK ACT, both in JSON.
import { createRuntime } from '@tallystick/core'
import type { OutsideCommand } from '@tallystick/core/vocabulary'
import { createClient } from '@tallystick/engines'
import { createCampaignAgent } from './campaign-agent.ts'
import { openSite, type Task } from './campaign-site.ts'

/** What a client does: it starts a run, or sends it a command. */
export type Act = { readonly key: string } & (
  | { readonly task: string }
  | { readonly runId: string; readonly command: OutsideCommand }
)

const [task, act] = process.argv.slice(2).map((text) => JSON.parse(text) as unknown) as [Task, Act]
const { ledger, engine } = await openSite(task)
const agent = createCampaignAgent(task.world)
const dying = {
  ...engine,
  wake: (): Promise<void> => {
    process.kill(process.pid, 'SIGKILL')
    return new Promise(() => undefined)
  },
}
const client = createClient({ runtime: createRuntime({ ledger, agents: [agent] }), engine: dying })
if ('task' in act) await client.enqueue(agent, act.task, { idempotencyKey: act.key })
else
  throw new Error(`It lives: ${JSON.stringify(await client.post(act.runId, act.command, { key: act.key }))}`)
