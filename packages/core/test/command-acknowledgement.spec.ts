import { describe, expect, it } from 'vitest'
import type { Refusal } from '@tallystick/core/machine'
import { CommandAcknowledgements } from '../src/runtime/commands/command-acknowledgement.ts'

const refusal: Refusal = { code: 'run_finished', message: 'It is over.' }

/** A delivery that a test ends. */
function delivery() {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  return { deliver: () => promise, resolve, reject }
}

/** Commands that were sent under these keys; those of `delivered` are in the inbox. */
async function sent(keys: readonly string[], delivered: readonly string[] = keys) {
  const commands = new CommandAcknowledgements()
  const answers: string[] = []
  const deliveries = keys.map((key) => {
    const { deliver, resolve } = delivery()
    const note = (answer: unknown): number => answers.push(`${key} ${JSON.stringify(answer)}`)
    commands.send(key, deliver).then(note, (error: Error) => note(error.message))
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
    const failing = commands.send('d', () => Promise.reject(new Error('no inbox')))
    await expect(failing).rejects.toThrow('no inbox')
    expect(commands.hasPending).toBe(false)
  })

  it('are waited for until the last of them is in the inbox', async () => {
    const { commands, deliveries } = await sent(['a', 'b'], [])
    let isDelivered = false
    void commands.allDelivered().then(() => (isDelivered = true))
    deliveries[0]!.resolve()
    await settle()
    expect(isDelivered).toBe(false)
    const late = delivery()
    commands.send('c', late.deliver).catch(() => {})
    deliveries[1]!.resolve()
    await settle()
    expect(isDelivered).toBe(false)
    late.reject(new Error('no inbox'))
    await settle()
    expect(isDelivered).toBe(true)
    await commands.allDelivered()
  })
})
