import { createRuntime, defineAgent, joinText, type Ledger } from '@tallystick/core'
import { scriptedModel } from '@tallystick/testkit'
import { verifyRun } from '../../src/index.ts'

const agent = () => {
  const model = scriptedModel(Array.from({ length: 1_000 }, () => ({ text: 'Noted.' })))
  return defineAgent({ name: 'listener', instructions: 'Listen.', model })
}

/**
 * Lets two processes speak in one session at once, each joining the run of the other. Returns what is wrong: messages
 * that were not said once in the session's history, and runs that end with an inbox that was not read.
 */
export async function unheard(first: Ledger, second: Ledger, times: number): Promise<readonly string[]> {
  const faults: string[] = []
  for (let nth = 0; nth < times; nth++) {
    const sessionId = `chat ${nth}`
    const said = await Promise.all(
      [first, second].map(async (ledger, place) => {
        const own = agent()
        const session = createRuntime({ ledger, agents: [own] }).session(sessionId)
        const texts = ['a', 'b'].map((word) => `${word}${place}`)
        for (const text of texts) {
          const run = await session.run(own, text, { whenBusy: 'join' })
          await run.result
        }
        return texts
      }),
    )
    const history = await createRuntime({ ledger: first }).session(sessionId).history()
    const received = (history?.messages ?? []).flatMap((message) =>
      message.role === 'user' ? [joinText(message.parts)] : [],
    )
    const [due, found] = [said.flat().toSorted().join(' '), received.toSorted().join(' ')]
    if (due !== found) faults.push(`${sessionId}: heard ${found}, not ${due}`)
    for await (const { runId } of first.runs({ sessionId })) {
      const { ok, broken } = await verifyRun(first, runId)
      if (!ok) faults.push(`run ${runId}: ${broken?.what}`)
    }
  }
  return faults
}
