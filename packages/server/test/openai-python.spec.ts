import { execFile, execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { openOffice, payingAgent, tellingAgent } from './kit/office.ts'

/** `PYTHON` names another one, such as that of a virtual environment. */
const python = process.env['PYTHON'] ?? 'python3'

function hasClient(): boolean {
  try {
    execFileSync(python, ['-c', 'import openai'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
const isThere = hasClient()
if (!isThere)
  console.warn(
    'The client of OpenAI for Python is left out. Install it: pip install openai, or set PYTHON to one that has it.',
  )

// Needs Python with the client. Where this machine has none, the line above says so.
describe.skipIf(!isThere)('the client of OpenAI for Python', () => {
  it('gets answers, streamed and not, decides, and reads a refusal', async () => {
    const texts = Array.from({ length: 4 }, (_, index) => `Tea number ${index}.`)
    const office = await openOffice({ agents: [tellingAgent('teller', ...texts), payingAgent()] })
    const script = join(import.meta.dirname, 'kit/openai_client.py')
    const { stdout } = await promisify(execFile)(python, ['-B', script, office.listening.url, 'boss'])
    expect(JSON.parse(stdout)).toEqual({
      models: ['teller', 'office'],
      response: ['completed', texts[0], expect.any(Number)],
      streamed_response: [texts[1], texts[1]],
      completion: ['stop', texts[2]],
      streamed_completion: texts[3],
      approved: ['pay', 'Payment: 5 USD paid'],
      refused: [404, expect.any(String)],
    })
    expect(office.reported).toEqual([])
  })
})
