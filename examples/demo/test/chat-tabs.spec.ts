// The page of `demo --serve` in several tabs of a browser, where this machine has one: see chat-page.spec.ts.
import type { Page } from 'playwright-core'
import { afterAll, expect, it } from 'vitest'
import { openBench } from './bench.ts'
import { lacksBrowser, useBrowsers } from '../../../scripts/testing/browser.ts'
import { startDemo } from './program.ts'

const openBrowser = useBrowsers(afterAll)

/** What a tab has of a run that it follows: the numbers and the types of its events, and the text of the replies. */
interface Followed {
  readonly seqs: readonly number[]
  readonly types: readonly string[]
  readonly text: string
}

/** Follows a run in a tab by server-sent events, after one of its events, until one of a type. */
async function follow(
  tab: Page,
  asked: { run: string; token: string; after: number; until: string },
): Promise<Followed> {
  return await tab.evaluate(async ({ run, token, after, until }) => {
    const headers = {
      authorization: `Bearer ${token}`,
      accept: 'text/event-stream',
      'last-event-id': String(after),
    }
    const response = await fetch(`/runs/${run}/events`, { headers })
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    const [seqs, types]: [number[], string[]] = [[], []]
    let [text, rest] = ['', '']
    for (;;) {
      const { value, done } = await reader.read()
      if (done) return { seqs, types, text }
      const frames = (rest + value).split('\n\n')
      rest = frames.pop() ?? ''
      for (const frame of frames) {
        const [, data] = /^data: (.*)$/m.exec(frame) ?? []
        if (data === undefined) continue
        const event = JSON.parse(data) as { seq: number; type: string; text?: string }
        seqs.push(event.seq)
        types.push(event.type)
        if (event.type === 'assistant_text_delta') text += event.text ?? ''
        if (event.type !== until) continue
        await reader.cancel()
        return { seqs, types, text }
      }
    }
  }, asked)
}

// Needs Chromium.
it.skipIf(lacksBrowser)(
  'tabs of one run show the same text once, a decision of one shows in the other, and a reload continues',
  async () => {
    await using bench = await openBench()
    await using demo = await startDemo(['--serve', '--ledger', bench.ledgerPath])
    await using browser = await openBrowser()
    const address = await demo.firstLine
    const { page: first, faults } = browser
    await first.goto(address)
    const token = new URLSearchParams(new URL(address).hash.slice(1)).get('token') ?? ''
    const chat = await first.evaluate(() => sessionStorage.getItem('chat') ?? '')
    await first.getByRole('button', { name: 'Send' }).click()
    await first.getByRole('region', { name: 'sql_query' }).waitFor()

    // In the middle of the answer: another tab of the same chat, and one that follows the run itself.
    const second = await first.context().newPage()
    await second.goto(new URL('/chat.css', address).href)
    await second.evaluate((id) => sessionStorage.setItem('chat', id), chat)
    await second.goto(address)
    const third = await first.context().newPage()
    await third.goto(new URL('/chat.css', address).href)
    const run = await third.evaluate(async (authorization) => {
      const listed = await fetch('/runs', { headers: { authorization } })
      return ((await listed.json()) as { runs: { runId: string }[] }).runs[0]!.runId
    }, `Bearer ${token}`)
    const before = await follow(third, { run, token, after: 0, until: 'tool_result' })
    await third.reload()
    const asked = await follow(third, {
      run,
      token,
      after: before.seqs.at(-1) ?? 0,
      until: 'approval_requested',
    })
    for (const tab of [first, second]) await tab.getByRole('button', { name: 'Approve' }).waitFor()
    const answerIn = (tab: Page): Promise<string> => tab.locator('li.assistant').innerText()
    expect(await answerIn(second)).toBe(await answerIn(first))
    expect(await first.locator('li.assistant > p').allInnerTexts()).toEqual(
      await second.locator('li.assistant > p').allInnerTexts(),
    )

    const rest = follow(third, { run, token, after: asked.seqs.at(-1) ?? 0, until: 'run_finished' })
    await second.getByRole('button', { name: 'Approve' }).click()
    const ended = await rest
    await second.getByText('Order 1 is placed').waitFor()
    const seqs = [before, asked, ended].flatMap((each) => each.seqs)
    expect(seqs).toEqual(seqs.map((_, index) => index + 1))
    expect(ended.types).toContain('approval_decided')
    const shown = (await second.locator('li.assistant > p').allInnerTexts()).join('').replaceAll(/\s/g, '')
    expect(
      [before, asked, ended]
        .map(({ text }) => text)
        .join('')
        .replaceAll(/\s/g, ''),
    ).toBe(shown)
    expect(bench.orders()).toHaveLength(1)

    // The first tab learns of the decision, and of the answer.
    await first.getByText('Order 1 is placed').waitFor()
    expect(await first.getByRole('button', { name: 'Approve' }).count()).toBe(0)
    expect(await answerIn(first)).toBe(await answerIn(second))
    expect(bench.orders()).toHaveLength(1)
    expect(faults).toEqual([])
  },
)
