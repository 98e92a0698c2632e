import type { RuntimeEvent } from '@tallystick/core'
import { createRuntime, memoryLedger } from '@tallystick/core'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { claudeModelId, loopbackModelId } from '../src/choose-model.ts'
import { openDemo } from '../src/open-demo.ts'
import { readOptions } from '../src/options.ts'
import { startRateService } from '../src/rate-service.ts'
import { question } from '../src/task.ts'
import type { Bench } from './bench.ts'
import { lastLine, openBench } from './bench.ts'
import { runDemo } from './program.ts'

/** The one run of the ledger, event by event. */
async function events(bench: Bench): Promise<readonly RuntimeEvent[]> {
  const ledger = sqliteLedger(bench.ledgerPath, { readOnly: true })
  try {
    const [run] = await Array.fromAsync(ledger.runs())
    return run ? await Array.fromAsync(ledger.read(run.runId)) : []
  } finally {
    await ledger.close()
  }
}

/** Dollars for a euro, as the rate service quotes them. */
async function quotedRate(): Promise<number> {
  const service = await startRateService()
  try {
    const answer = await fetch(`${service.origin}/v1/latest?base=EUR&symbols=USD`)
    const { rates } = (await answer.json()) as { rates: { USD: number } }
    return rates.USD
  } finally {
    await service.close()
  }
}

// No test asks a vendor, neither in this process.
beforeAll(() => void vi.stubEnv('ANTHROPIC_API_KEY', undefined))

describe.concurrent('the demo', () => {
  it('answers with the numbers that SQL and the rate service give, and places the order once', async () => {
    await using bench = await openBench()
    const { code, stdout, stderr } = await bench.demo(['--yes', '--json'])
    const { sku, name, units, revenue, quantity } = bench.facts()
    const result = lastLine(stdout) as { runId: string; text: string }
    expect(code).toBe(0)
    expect(result).toMatchObject({
      status: 'done',
      reason: 'answered',
      turns: 5,
      toolCalls: 5,
      ledger: bench.ledgerPath,
    })
    const rate = await quotedRate()
    for (const fact of [name, sku, `${units} units`, `${revenue.toFixed(2)} EUR`, `${rate} dollars a euro`]) {
      expect(result.text).toContain(fact)
    }
    expect(result.text).toContain(`${(revenue * rate).toFixed(2)} USD`)
    expect(result.text).toContain(`Order 1 is placed: ${quantity} of ${sku}`)
    expect(bench.orders()).toMatchObject([{ sku, quantity }])
    expect(stderr).toContain('A server on loopback plays the model')
    expect(stderr).toContain('5 requests, 5 results, 0 open')
    expect(stderr).toContain(`npx -y pnpm@12 tallystick show ${bench.ledgerPath} ${result.runId}`)
    expect(stdout.trimEnd().split('\n')).toHaveLength(1)
  })

  it('chains its tools, and shows each call with its two halves under one id', async () => {
    await using bench = await openBench()
    const { stdout } = await bench.demo(['--yes'])
    const { sku, units, quantity } = bench.facts()
    const [rate, recorded] = [await quotedRate(), await events(bench)]
    const requests = recorded.filter((event) => event.type === 'tool_request_ready')
    expect(requests.map(({ turn, name }) => `${turn} ${name}`)).toEqual([
      '1 sql_query',
      '2 http_fetch',
      '3 calculator',
      '3 calculator',
      '4 place_order',
    ])
    const [, , dollars, order, placed] = requests.map(({ input }) => JSON.stringify(input))
    expect(dollars).toContain(`* ${rate}`)
    expect(order).toContain(`${units} * 1.2`)
    expect(JSON.parse(placed ?? '')).toEqual({ sku, quantity })
    // Ports are others after a restart, so nothing that the model sees may name one.
    expect(JSON.stringify(recorded)).not.toContain('127.0.0.1')

    const ids = new Set(requests.map(({ toolCallId }) => toolCallId))
    const shown = (half: RegExp): Set<string | undefined> =>
      new Set(Array.from(stdout.matchAll(half), ([, id]) => id))
    expect(shown(/^┌ request \S+ (call_\S+)$/gm)).toEqual(ids)
    expect(shown(/^└ result {2}\S+ (call_\S+) success in \d+ ms$/gm)).toEqual(ids)
    expect(stdout).not.toContain('\u001b[')
  })

  it('ends suspended without a terminal to ask at, and continues by the commands that it prints', async () => {
    await using bench = await openBench()
    const { code, stdout } = await bench.demo([])
    expect(code).toBe(0)
    expect(bench.orders()).toEqual([])
    const [, run = '', call = ''] =
      /^ {2}npx -y pnpm@12 tallystick approve \S+ (\S+) (\S+) --by you$/m.exec(stdout) ?? []
    expect(stdout).toContain(`  npx -y pnpm@12 tallystick resume ${bench.ledgerPath} ${run}\n`)

    expect(await bench.tallystick('approve', [run, call, '--by', 'ann'])).toMatchObject({ code: 0 })
    const resumed = await bench.tallystick('resume', [run, '--json'])
    const { sku, quantity } = bench.facts()
    expect(resumed.code).toBe(0)
    expect(lastLine(resumed.stdout)).toMatchObject({
      runId: run,
      status: 'done',
      reason: 'answered',
      toolCalls: 5,
    })
    expect(bench.orders()).toMatchObject([{ sku, quantity }])
    expect(await bench.tallystick('verify')).toMatchObject({ code: 0 })
  })

  it('refuses a model whose key is missing', async () => {
    const { code, stderr } = await runDemo(['--model', claudeModelId])
    expect(code).toBe(2)
    expect(stderr).toBe(
      `error: The model ${claudeModelId} runs at Anthropic, which needs a key. ` +
        'Set ANTHROPIC_API_KEY, or leave out --model to have a server on loopback play the model.\n',
    )
  })
})

describe('the agent of the demo', () => {
  it('says what it knows so far where a limit ends its work', async () => {
    await using bench = await openBench()
    const demo = await openDemo({ ledgerPath: bench.ledgerPath, modelId: loopbackModelId })
    try {
      const runtime = createRuntime({ ledger: memoryLedger() })
      const result = await runtime.run(demo.agent, question, { limits: { maxTurns: 3 } }).result
      const { units, revenue } = bench.facts()
      expect(result).toMatchObject({ status: 'done', reason: 'turn_limit', toolCalls: 2 })
      expect(result.text).toContain(`${units} units for ${revenue.toFixed(2)} EUR`)
      expect(result.text).toContain('No order was confirmed.')
    } finally {
      await demo.close()
    }
  })
})

describe('the options of the demo', () => {
  afterEach(() => void vi.restoreAllMocks())

  it.each([
    [['--yes', '--deny', 'no'], "option '--yes' cannot be used with option '--deny <reason>'"],
    [['--ledgers', 'x'], "unknown option '--ledgers'"],
    [['--ledger'], "option '--ledger <file>' argument missing"],
    [['--ledger', ' '], 'It has to name a file.'],
    [['now'], 'too many arguments'],
  ])('are refused in words where they are %j', (words, message) => {
    const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    expect(readOptions(words)).toBe(2)
    expect(write.mock.calls.join('')).toContain(message)
  })

  it('are explained by --help', () => {
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
    expect(readOptions(['--help'])).toBe(0)
    for (const option of ['--ledger', '--yes', '--deny', '--model', '--json']) {
      expect(write.mock.calls.join('')).toContain(option)
    }
  })
})
