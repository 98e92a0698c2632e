import { createRuntime, defineAgent, memoryLedger } from '@tallystick/core'
import { createServer } from '@tallystick/server'
import { scriptedModel, testTool } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'

/** The frames of a reader that came before the reply with a text. */
async function framesWith({ liveText }: { readonly liveText: boolean }): Promise<readonly string[]> {
  const gate = Promise.withResolvers<void>()
  const look = testTool({
    name: 'look',
    run: async () => {
      await gate.promise
      return 'nine'
    },
  })
  const model = scriptedModel([
    { toolCalls: [{ name: 'look', input: {} }] },
    { text: 'Nine in the morning.' },
  ])
  const agent = defineAgent({ name: 'clock', instructions: 'Tell.', model, tools: [look] })
  const runtime = createRuntime({
    ledger: memoryLedger(),
    agents: [agent],
    liveText: true,
    recording: { textDeltas: false },
  })
  const server = createServer({
    runtime,
    agents: [agent],
    liveText,
    authorize: () => ({ name: 'ada', sees: 'everything' }),
  })
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ agent: 'clock', input: 'What time is it?' })
  const started = await server.fetch(new Request('http://localhost/runs', { method: 'POST', headers, body }))
  const { runId } = (await started.json()) as { runId: string }
  const events = await server.fetch(
    new Request(`http://localhost/runs/${runId}/events`, { headers: { accept: 'text/event-stream' } }),
  )
  const reading = events.text()
  gate.resolve()
  return (await reading).trimEnd().split('\n\n')
}

const pieceIn = (frame: string): { readonly text: string } =>
  JSON.parse(frame.replace(/^event: live_text\ndata: /, '')) as { text: string }

describe('text before it is on record', () => {
  it('comes as events of its own name without an id, in front of the message', async () => {
    const frames = await framesWith({ liveText: true })
    const live = frames.filter((frame) => frame.startsWith('event: live_text\n'))
    expect(live.map((frame) => pieceIn(frame).text).join('')).toBe('Nine in the morning.')
    expect(pieceIn(live[0] ?? '')).toMatchObject({ turn: 2, attempt: 1, part: 0 })
    expect(live.join('\n')).not.toMatch(/^id:/m)
    const message = frames.findLastIndex((frame) => frame.includes('"type":"assistant_message_finished"'))
    expect(frames.lastIndexOf(live.at(-1) ?? '')).toBeLessThan(message)
    expect(frames.at(-1)).toContain('"type":"run_finished"')
  })

  it('is not sent unless the server is told to', async () => {
    const frames = await framesWith({ liveText: false })
    expect(frames.join('\n')).not.toContain('live_text')
    expect(frames.at(-1)).toContain('"type":"run_finished"')
  })
})
