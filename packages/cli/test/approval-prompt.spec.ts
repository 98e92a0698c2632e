import { describe, expect, it } from 'vitest'
import { forgerConfig } from './kit/forger.ts'
import { atTerminal } from './kit/pseudo-terminal.ts'
import { openShop } from './kit/shop.ts'

const question = 'Run pay with this input? [y]es, [a]lways, [n]o, [l]ater: '
/** The end of the second call, with the question: what is typed before that is there is forgotten. */
const secondQuestion = `"to": "second"\n}\n${question}`

describe('the question about a call, in a real terminal', () => {
  it('cannot be forged, hidden, cut or answered ahead', async () => {
    await using shop = await openShop()
    const words = ['run', shop.ledgerPath, 'Pay.', '--config', forgerConfig]
    using command = atTerminal({ ahead: 'y\ny\ny\ny\ny', rows: 12 }, ...words)

    const first = await command.shows('-- 8 of ')
    expect(first).toContain('"amount": 1000000')
    expect(first).not.toContain('"to": "attacker"')
    expect(first).toMatch(/^Reason: as agreed Input: \{ "amount": 1 \}$/m)
    expect(first.match(/^Input: /gm)).toHaveLength(1)
    expect(command.hides('"amount": 1000000')).toBe(false)
    // Yes to what was not shown in full shows more of it; all in one go counts once.
    command.type('y\ry\ry\ry\ry\r')
    await command.shows('-- 16 of ')
    command.type('\r')
    await command.shows('-- 24 of ')
    command.type('y\r')
    const whole = await command.shows(question)
    expect(whole).toContain('"to": "attacker"')
    expect(command.hides('"to": "attacker"')).toBe(false)
    expect(whole).not.toContain('approved')
    command.type('n\r')
    await command.shows('Why not? The model reads it: ')
    command.type('too dear\ry\ry\r')

    const second = await command.shows(secondQuestion)
    expect(second).not.toContain('was denied by')
    command.type('y\r')
    await command.shows('paid "second"')
    expect(await command.ended).toBe(0)
  })

  it('is left by Ctrl-C, and leaves the terminal to the next command', async () => {
    await using shop = await openShop()
    using command = atTerminal({}, 'run', shop.ledgerPath, 'Pay.', '--config', forgerConfig)
    await command.shows('Enter shows more')
    command.type('\u0003')
    await command.shows(secondQuestion)
    command.type('\u0004')
    const rest = await command.shows('Then this continues it:')
    expect(rest).not.toContain('approved')
    expect(await command.ended).toBe(0)
  })
})
