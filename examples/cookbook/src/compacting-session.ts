// A conversation over many days, one run a day, each in a new runtime: a model summarises what grows too long to be shown.
import assert from 'node:assert/strict'
import { createRuntime, defineAgent, memoryLedger, joinText, type ModelRequest } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'

const days = [
  'We want to renovate the kitchen. Our budget is 18,000 euros.',
  'The fitter offers oak fronts for 9,400 euros, with six weeks to wait.',
  'The electrician asks 2,100 euros, and needs two days before the fitter comes.',
  'My sister is allergic to the glue of the cheap worktop, so it has to be stone: 3,300 euros.',
  'The painter can come on 4 June or on 18 June.',
  'The old cooker goes to a neighbour, who fetches it on a Saturday.',
  'The tiles arrived, and three of them are chipped.',
  'What was our budget, and why no cheap worktop?',
]
const linesIn = ({ messages }: ModelRequest, words: RegExp): string =>
  messages
    .flatMap((message) => (message.role === 'user' ? joinText(message.parts).split('\n') : []))
    .map((line) => line.trim())
    .filter((line) => words.test(line))
    .join('\n')
// Scripts play both models; use anthropic('…') instead. The summary keeps what is about money and health.
const sumUp = (request: ModelRequest) => ({ text: linesIn(request, /euros|allergic/) })
const summarizer = scriptedModel(Array.from(days, () => sumUp))
const model = scriptedModel([
  ...days.slice(1).map(() => ({ text: 'Noted. I keep the plan and the sum up to date. '.repeat(9) })),
  (request) => ({ text: `The script was shown:\n${linesIn(request, /budget|allergic/)}` }),
])
const agent = defineAgent({
  name: 'planner',
  instructions: 'Plan the renovation.',
  model,
  // In estimated tokens. `summarize` may also be a pure function; without it older messages are left out.
  compaction: { maxContextTokens: 600, keepMessages: 2, summarize: summarizer },
})
const ledger = memoryLedger()
let answer = ''
for (const said of days) {
  const run = createRuntime({ ledger, agents: [agent] }).run(agent, said, { sessionId: 'kitchen' })
  for await (const event of run) {
    if (event.type !== 'context_compacted') continue
    console.log(`${event.replacedMessages} messages summed up, ${event.tokensAfter} tokens are left.`)
  }
  answer = (await run.result).text
}
console.log(answer)
assert.equal(summarizer.requests.length, 2)
// No request grew beyond seven messages, and the last one still knows what was said on the first day.
assert.equal(Math.max(...model.requests.map(({ messages }) => messages.length)), 7)
assert.match(answer, /Our budget is 18,000 euros\.\n.*allergic to the glue/)
// The ledger still has everything.
const kept: unknown[] = []
for await (const { runId } of ledger.runs({ sessionId: 'kitchen' })) {
  for await (const event of ledger.read(runId)) {
    if (event.type === 'input_received') kept.unshift(event.message.parts)
  }
}
const said = days.map((text) => [{ type: 'text', text }])
assert.deepEqual(kept, said)
