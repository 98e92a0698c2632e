// Text as it is written: the text of a broken call is withdrawn, and after an approval nothing is repeated.
import assert from 'node:assert/strict'
import { createRuntime, defineAgent, memoryLedger, type RunStreams } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { defineTool } from '@tallystick/tools'
import { z } from 'zod'

const transfer = defineTool({
  name: 'transfer',
  description: 'Moves money to the savings account.',
  input: z.object({ euros: z.number() }),
  effect: 'write',
  approval: 'always',
  execute: ({ euros }) => `moved ${euros} euros`,
})
// A script plays the model, and its first call breaks off; use anthropic('…') instead.
const model = scriptedModel([
  { text: 'The balance is 12', fail: 'network' },
  { text: 'The balance is 99 euros. ', toolCalls: [{ name: 'transfer', input: { euros: 50 } }] },
  { text: 'The script says: 50 euros are saved.' },
])
const agent = defineAgent({ name: 'teller', instructions: 'Help.', model, tools: [transfer] })
const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent] })

/** A page that shows a run: what it shows now, and everything that it has shown. */
class Page {
  text = ''
  readonly shown: string[] = []
  follow(streams: RunStreams): void {
    streams.textUpdates$.subscribe(({ type, text }) => {
      this.text = type === 'text' ? this.text + text : this.text.slice(0, -text.length)
      this.shown.push(this.text)
    })
  }
}
const run = runtime.run(agent, 'Save what I can spare.')
const page = new Page()
page.follow(run)
const rest = await run.result
assert.equal(page.shown.includes('The balance is 12'), true)
assert.equal(page.text, 'The balance is 99 euros. ')

// A second page starts after the last event that the first page has shown.
const next = new Page()
next.follow(run.after(rest.seq))
await run.approve(rest.pendingApprovals[0]!, { by: 'maria' })
const result = await run.result
assert.equal(next.text, 'The script says: 50 euros are saved.')
assert.equal(result.reason, 'answered')

// To print whole messages instead of pieces, subscribe to text$: one value per message, once the message is final.
run.text$.subscribe((text) => console.log(`- ${text}`))
