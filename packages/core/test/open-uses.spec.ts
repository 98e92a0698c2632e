import { OpenUses } from '@tallystick/core/store-kit'
import { describe, expect, it } from 'vitest'

describe('what has to end before a ledger closes', () => {
  it('is called once each, that which begins meanwhile too, and a failure keeps nothing open', async () => {
    const uses = new OpenUses()
    const said: string[] = []
    uses.add(async () => {
      said.push('first')
      uses.add(async () => void said.push('later'))
      throw new Error('no answer')
    })
    await uses.closeAfter(async () => void said.push('closed'))
    expect(said).toEqual(['first', 'later', 'closed'])
  })

  it('is not called once it was taken back: nothing is waited for then', async () => {
    const uses = new OpenUses()
    const said: string[] = []
    const end = async (): Promise<unknown> => said.push('ended')
    uses.add(end)()
    const closed = uses.closeAfter(async () => void said.push('closed'))
    expect(said).toEqual(['closed'])
    await closed
    // The same function given twice is two uses.
    uses.add(end)()
    uses.add(end)
    await uses.closeAfter(async () => void said.push('closed'))
    expect(said).toEqual(['closed', 'ended', 'closed'])
  })
})
