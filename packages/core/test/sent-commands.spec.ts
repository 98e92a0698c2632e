import { describe, expect, it } from 'vitest'
import { memoryLedger, type RunId } from '@tallystick/core'
import type { Refusal } from '@tallystick/core/internal'
import type { OutsideCommand } from '@tallystick/core/vocabulary'
import { manualClock, testTool } from '@tallystick/testkit'
import { SentCommands } from '../src/runtime/commands.ts'
import { stage } from './stage.ts'

const refusal: Refusal = { code: 'run_finished', message: 'It is over.' }
const runId = '01a1f640-bc00-7152-922e-53a50ae8dae1' as RunId
const command: OutsideCommand = { type: 'cancel', reason: 'enough' }

/** A delivery that a test ends. */
function delivery() {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  return { deliver: () => promise, resolve, reject }
}

/** Commands that were sent under these keys; those of `delivered` are in the inbox. */
async function sent(keys: readonly string[], delivered: readonly string[] = keys) {
  const commands = new SentCommands(runId, memoryLedger(), manualClock())
  const answers: string[] = []
  const deliveries = keys.map((key) => {
    const { deliver, resolve } = delivery()
    const note = (answer: unknown): number => answers.push(`${key} ${JSON.stringify(answer)}`)
    commands.send(command, key, deliver).then(note, (error: Error) => note(error.message))
    return { key, resolve }
  })
  for (const { key, resolve } of deliveries) if (delivered.includes(key)) resolve()
  await settle()
  return { commands, answers, deliveries }
}

/** Lets everything happen that waits for nothing from outside. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}

describe('commands that this process has sent', () => {
  it('are answered one by one, each as it was decided, and once', async () => {
    const { commands, answers } = await sent(['a', 'b'])
    expect(commands.hasPending).toBe(true)
    commands.acknowledge('a', undefined)
    expect(commands.hasPending).toBe(true)
    commands.acknowledge('b', refusal)
    commands.acknowledge('b', undefined)
    commands.acknowledge('of another process', undefined)
    expect(commands.hasPending).toBe(false)
    await settle()
    expect(answers).toEqual([
      'a {"accepted":true}',
      'b {"accepted":false,"code":"run_finished","message":"It is over."}',
    ])
  })

  it('are in the inbox from their delivery until they are decided', async () => {
    const { commands, deliveries } = await sent(['a', 'b', 'c'], ['a', 'b'])
    expect(commands.deliveredKeys).toEqual(['a', 'b'])
    commands.acknowledge('a', undefined)
    expect(commands.deliveredKeys).toEqual(['b'])
    commands.acknowledge('c', undefined)
    deliveries[2]!.resolve()
    await settle()
    expect(commands.deliveredKeys).toEqual(['b'])
  })

  it('are all refused when the run is over', async () => {
    const { commands, answers } = await sent(['a', 'b'], ['a'])
    commands.refuseAll(refusal)
    await settle()
    expect(answers.map((answer) => answer.slice(0, 20))).toEqual([
      'a {"accepted":false,',
      'b {"accepted":false,',
    ])
    expect(commands.hasPending).toBe(false)
  })

  it('are rejected with the failure of their delivery, of the one command, or of the writer', async () => {
    const { commands, answers } = await sent(['a', 'b', 'c'])
    commands.fail(new Error('taken'), 'b')
    commands.fail(new Error('taken'), 'of another process')
    await settle()
    expect(answers).toEqual(['b "taken"'])
    commands.fail(new Error('disk full'))
    await settle()
    expect(answers).toEqual(['b "taken"', 'a "disk full"', 'c "disk full"'])
    const failing = commands.send(command, 'd', () => Promise.reject(new Error('no inbox')))
    await expect(failing).rejects.toThrow('no inbox')
    expect(commands.hasPending).toBe(false)
  })

  it('wait under a key each: another one under the same key is rejected, and takes no answer from the first', async () => {
    const { commands, answers } = await sent(['a'])
    let deliveries = 0
    const again = commands.send(command, 'a', async () => void deliveries++)
    await expect(again).rejects.toMatchObject({ code: 'ledger_conflict', kind: 'unique' })
    expect(deliveries).toBe(0)
    commands.acknowledge('a', undefined)
    await settle()
    expect(answers).toEqual(['a {"accepted":true}'])
  })

  it('are waited for until the last of them is in the inbox', async () => {
    const { commands, deliveries } = await sent(['a', 'b'], [])
    let isDelivered = false
    void commands.allDelivered().then(() => (isDelivered = true))
    deliveries[0]!.resolve()
    await settle()
    expect(isDelivered).toBe(false)
    const late = delivery()
    commands.send(command, 'c', late.deliver).catch(() => {})
    deliveries[1]!.resolve()
    await settle()
    expect(isDelivered).toBe(false)
    late.reject(new Error('no inbox'))
    await settle()
    expect(isDelivered).toBe(true)
    await commands.allDelivered()
  })
})

describe('commands that were left to another process', () => {
  /** A run that waits for a person, and commands about it that another process decides with `decide`. */
  async function left() {
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const steps = [{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Done.' }]
    const { ledger, clock, runtime, start, waitUntilSettled } = stage({ steps, tools: [pay] })
    const run = start()
    const { pendingApprovals } = await waitUntilSettled(run.result)
    const commands = new SentCommands(run.id, ledger, clock)
    const answers: [string, boolean][] = []
    const codes: string[] = []
    const send = (key: string, given: OutsideCommand, isLeft = true): void => {
      const deliver = async (): Promise<void> => {
        if (isLeft) await commands.leave(key)
        await ledger.put(run.id, { key, command: given, at: clock.now() })
      }
      void commands.send(given, key, deliver).then((answer) => {
        answers.push([key, answer.accepted])
        if (!answer.accepted) codes.push(answer.code)
      })
    }
    const decide = () => waitUntilSettled(runtime.resume(run.id).result)
    return { commands, answers, codes, send, decide, toolCallId: pendingApprovals[0]!.toolCallId }
  }

  it('are acknowledged by what that process has recorded, once they are out of the inbox', async () => {
    const { commands, answers, codes, send, decide, toolCallId } = await left()
    send('approval', { type: 'approve', toolCallId, by: 'ada' })
    send('the same again', { type: 'approve', toolCallId, by: 'ada' })
    send('not left', { type: 'cancel' }, false)
    await commands.allDelivered()
    await commands.acknowledgeLeft()
    await settle()
    expect(answers).toEqual([])
    await decide()
    await commands.acknowledgeLeft()
    await settle()
    expect(answers).toEqual([
      ['approval', true],
      ['the same again', false],
    ])
    expect(codes).toEqual(['not_awaiting_approval'])
    expect(commands.deliveredKeys).toEqual(['not left'])
  })

  it('are accepted where the same input is on record, under whichever key it came', async () => {
    const { commands, answers, send, decide } = await left()
    const message = { role: 'user', parts: [{ type: 'text', text: 'Hurry.' }] } as const
    send('first', { type: 'steer', message, receipt: 'r' })
    send('again', { type: 'steer', message, receipt: 'r' })
    await commands.allDelivered()
    await decide()
    await commands.acknowledgeLeft()
    await settle()
    expect(answers).toEqual([
      ['first', true],
      ['again', true],
    ])
  })

  it('are refused where they left the inbox of a run of which nothing is on record', async () => {
    const commands = new SentCommands(runId, memoryLedger(), manualClock())
    const answer = commands.send(command, 'a', () => commands.leave('a'))
    await commands.allDelivered()
    await commands.acknowledgeLeft()
    expect(await answer).toMatchObject({ accepted: false, code: 'already_cancelled' })
  })
})
