import { beforeAll, describe, expect, it, vi } from 'vitest'
import { claudeModelId } from '../src/choose-model.ts'
import { startModelServer } from '../src/model-server/server.ts'
import { stockPlayer } from '../src/stock-player.ts'
import { lastLine, openBench } from './bench.ts'

// No test asks a vendor, neither in this process.
beforeAll(() => void vi.stubEnv('ANTHROPIC_API_KEY', undefined))

describe.concurrent('a run of the demo', () => {
  it('says so, with the reason, when the order is denied', async () => {
    await using bench = await openBench()
    const { code, stdout } = await bench.demo(['--deny', 'the store is full', '--json'])
    expect(code).toBe(0)
    expect(lastLine(stdout)).toMatchObject({
      status: 'done',
      reason: 'answered',
      toolCalls: 4,
      text: expect.stringMatching(/was denied, so it is not placed: .*the store is full/),
    })
    expect(bench.orders()).toEqual([])
  })

  it('asks Claude, by the official client, where there is a key', async () => {
    await using bench = await openBench()
    const vendor = await startModelServer({ modelId: claudeModelId, player: stockPlayer })
    try {
      const environment = { ANTHROPIC_API_KEY: 'a key', ANTHROPIC_BASE_URL: vendor.origin }
      const { code, stdout } = await bench.demo([], { environment })
      expect(code).toBe(0)
      expect(stdout).toContain(`Claude is the model: ${claudeModelId}`)
      const keyless = await bench.tallystick('resume', ['latest', '--yes'])
      expect(keyless).toMatchObject({ code: 2, stderr: expect.stringContaining('Set ANTHROPIC_API_KEY') })
      const resumed = await bench.tallystick('resume', ['latest', '--yes', '--json'], { environment })
      expect(lastLine(resumed.stdout)).toMatchObject({ status: 'done', reason: 'answered' })
    } finally {
      await vendor.close()
    }
  })

  it('rests when it is stopped by Ctrl-C: what was in flight is kept, nothing more is started', async () => {
    await using bench = await openBench()
    const vendor = await startModelServer({ modelId: claudeModelId, player: stockPlayer, paceMs: 20 })
    try {
      const environment = { ANTHROPIC_API_KEY: 'a key', ANTHROPIC_BASE_URL: vendor.origin }
      const { code, stdout, stderr } = await bench.demo(['--yes'], {
        environment,
        interruptAt: 'I will look',
      })
      expect(code).toBe(0)
      expect(stderr).toContain('Stopping: nothing more is started')
      expect(stdout).toContain('Tally: 1 request, 0 results, 1 open')
      const [, run = ''] = /^ {2}npx -y pnpm@12 tallystick resume \S+ (\S+)$/m.exec(stdout) ?? []
      const resumed = await bench.tallystick('resume', [run, '--yes', '--json'], { environment })
      expect(lastLine(resumed.stdout)).toMatchObject({ status: 'done', reason: 'answered', toolCalls: 5 })
      expect(bench.orders()).toHaveLength(1)
    } finally {
      await vendor.close()
    }
  })

  it('is honest about a model that fails', async () => {
    await using bench = await openBench()
    const vendor = await startModelServer({ modelId: 'another', player: stockPlayer })
    try {
      const environment = { ANTHROPIC_API_KEY: 'a key', ANTHROPIC_BASE_URL: vendor.origin }
      const { code, stdout } = await bench.demo(['--json'], { environment })
      expect(code).toBe(1)
      expect(lastLine(stdout)).toMatchObject({ status: 'done', reason: 'model_failed', text: '' })
    } finally {
      await vendor.close()
    }
  })
})
