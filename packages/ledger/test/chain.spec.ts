import { createHash, createHmac } from 'node:crypto'
import * as fc from 'fast-check'
import '../../../scripts/testing/seed.ts'
import { describe, expect, it } from 'vitest'
import { type RunId } from '@tallystick/core'
import { canonicalJson } from '@tallystick/core/vocabulary'
import { sampleCallId, sampleRunId } from '@tallystick/core/testing'
import { commitmentOf, genesisHash, hexOf, isDigest, linkHash, rowDigest } from '../src/record/chain.ts'
import { segmentedCommitment, withoutSegments } from '../src/record/segments/segment-commitments.ts'
import { envelopeOf, envelopeText, type Envelope, type RowEnvelope } from '../src/record/envelope.ts'
import { anyText } from '../../../scripts/testing/any-text.ts'

// Fixed for ever: a ledger of today has to verify in ten years. Computed by hashlib of Python from the description in chain.ts.
const runId = sampleRunId(1)
const salt = Buffer.from('000102030405060708090a0b0c0d0e0f', 'hex')
const body = Buffer.from('{"delivery":"start"}')
const envelope: Envelope = {
  runId,
  seq: 1,
  epoch: 1,
  turn: 0,
  type: 'input_received',
  v: 1,
  at: 1760000000001,
}

const heads =
  '{"heads":["assistant_started",{"type":"assistant_text_delta","events":2},"tool_started 1_1_1"],"segments":['
const segments = [
  '{"attempt":1}',
  '{"same":{"attempt":1,"part":0},"text":["a","b"]}',
  '{"name":"look"}',
] as const
const segmentedEnvelope: RowEnvelope = {
  ...{ runId, firstSeq: 2, seq: 5, epoch: 1, turn: 1, v: 1, at: 1760000000004 },
  type: 'several',
}

describe('the chain of hashes', () => {
  it.each([
    ['all its segments', salt, `${heads}\n${segments.join(',\n')}\n]}`],
    [
      'one of them gone',
      Buffer.alloc(16),
      `${heads}\n${segments[0]},\nnull,\n${segments[2]}\n],"opened":["82a535c40213b1248f20f1e207fee8d9",` +
        '"055a28808a2fdffccc30d683b569b0aecab53a5fc0fa1d295850d9f751ad12bd","5a42b3e3179c5c7218ff5a77d2f04d4d"]}',
    ],
  ])('links a row of segments by the commitment to each, with %s', (_which, rowSalt, text) => {
    const commitment = segmentedCommitment({ salt: rowSalt, body: Buffer.from(text) })
    expect(hexOf(linkHash(genesisHash, segmentedEnvelope, commitment!))).toBe(
      'ea3e72394d0afc97f05cca84899cab10cadd0c5eb1d75745a036a244f45d0244',
    )
    const gone = withoutSegments({ salt: rowSalt, body: Buffer.from(text) }, (index) => index === 1)
    expect(Buffer.from(gone.body).toString()).toContain(
      '\nnull,\n{"name":"look"}\n],"opened":["82a535c40213b1248f20f1e207fee8d9","055a28808a2fdffccc30d683',
    )
    expect(hexOf(gone.salt)).toBe('00'.repeat(16))
  })

  it('commits to a body by HMAC-SHA256 with its salt', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.uint8Array({ maxLength: 300 }), (key, bytes) => {
        expect(hexOf(commitmentOf(key, bytes))).toBe(createHmac('sha256', key).update(bytes).digest('hex'))
      }),
    )
  })

  it('encodes an envelope as canonical JSON, without keys that are not there', () => {
    expect(envelopeText(envelope)).toBe(
      '{"at":1760000000001,"epoch":1,"runId":"01932f00-0000-7000-8000-000000000001","seq":1,"turn":0,"type":"input_received","v":1}',
    )
    expect(envelopeText({ ...envelope, type: 'tool_started', toolCallId: sampleCallId(runId) })).toBe(
      '{"at":1760000000001,"epoch":1,"runId":"01932f00-0000-7000-8000-000000000001","seq":1,"toolCallId":"call_01932f00000070008000000000000001_1_1_1","turn":0,"type":"tool_started","v":1}',
    )
  })

  it('encodes any envelope as the canonicaliser of JSON does, whatever its ids hold', () => {
    const whole = fc.maxSafeInteger()
    const fields = { seq: whole, epoch: whole, turn: whole, v: whole, at: whole }
    const ids = { runId: anyText(), type: anyText() }
    const toolCallId = fc.option(anyText(), { nil: undefined })
    fc.assert(
      fc.property(fc.record({ ...fields, ...ids, toolCallId }), (any) => {
        expect(envelopeText(any as Envelope)).toBe(canonicalJson({ ...envelopeOf(any as Envelope) }))
      }),
    )
  })

  it('hashes a text longer than its scratch buffer as a shorter one', () => {
    fc.assert(
      fc.property(fc.integer({ min: 15_000, max: 40_000 }), (length) => {
        const long = Buffer.alloc(length, 'é')
        expect(hexOf(commitmentOf(salt, long))).toBe(createHmac('sha256', salt).update(long).digest('hex'))
        const named = { ...envelope, runId: long.toString() as RunId }
        const parts = [Buffer.of(1), genesisHash, Buffer.from(envelopeText(named)), salt]
        const digest = createHash('sha256').update(Buffer.concat(parts)).digest('hex')
        expect(hexOf(linkHash(genesisHash, named, salt))).toBe(digest)
        const cell = { runId, pos: 1, headSeq: 2, headHash: salt, epoch: 3 }
        const session = { sessionId: long.toString(), sessionPlace: 1 }
        const row = canonicalJson({ ...cell, headHash: hexOf(salt), ...session })
        expect(hexOf(rowDigest({ ...cell, session }))).toBe(
          createHash('sha256')
            .update(Buffer.concat([Buffer.of(2), Buffer.from(row)]))
            .digest('hex'),
        )
      }),
    )
  })

  it('digests any row of a run as the canonicaliser of JSON spells it, whatever its ids hold', () => {
    const whole = fc.maxSafeInteger()
    const name = anyText()
    const session = fc.option(fc.record({ sessionId: name, sessionPlace: whole }), { nil: undefined })
    const fields = { runId: name, pos: whole, headSeq: whole, epoch: whole, session }
    fc.assert(
      fc.property(fc.record({ ...fields, headHash: fc.uint8Array({ maxLength: 40 }) }), (cell) => {
        const { session: place, headHash, ...row } = cell
        const text = canonicalJson({ ...row, headHash: hexOf(headHash), ...place })
        const bytes = Buffer.concat([Buffer.of(2), Buffer.from(text)])
        expect(hexOf(rowDigest(cell))).toBe(createHash('sha256').update(bytes).digest('hex'))
      }),
    )
  })

  it('keeps its test vectors', () => {
    const commit = commitmentOf(salt, body)
    expect(hexOf(commit)).toBe('32759bf0fe09929504b8cd192d509671183bd10e6724487819e3731a8973e922')
    const first = linkHash(genesisHash, envelope, commit)
    expect(hexOf(first)).toBe('ecabc02acf2364006b63186577c18f4f945e607d19a1874513a4a96234e3c9c7')
    const second = linkHash(first, { ...envelope, seq: 2 }, commit)
    expect(hexOf(second)).toBe('1d5e30711d3831e3fe7a5c08498cc83e027189e377e56a387973152a2a1ae596')
    expect(hexOf(rowDigest({ runId, pos: 1, headSeq: 2, headHash: second, epoch: 3 }))).toBe(
      'f466a470164d0a0f948c32945779187ebafd71db24319e4c8567f933d320d292',
    )
  })

  it('gives another link for another value of any field of the envelope', () => {
    const commit = commitmentOf(salt, body)
    const changes: readonly Partial<Envelope>[] = [
      { runId: sampleRunId(2) },
      { seq: 2 },
      { epoch: 2 },
      { turn: 1 },
      { type: 'cancel_requested' },
      { v: 2 },
      { at: 1760000000002 },
      { toolCallId: sampleCallId(runId) },
    ]
    const links = changes.map((change) => hexOf(linkHash(genesisHash, { ...envelope, ...change }, commit)))
    expect(new Set([hexOf(linkHash(genesisHash, envelope, commit)), ...links]).size).toBe(9)
  })
})

describe('a digest that is found', () => {
  it('is the one that is due only where every byte of it is, from the first to the last', () => {
    const due = createHash('sha256').update('due').digest()
    const text = due.toString('latin1')
    expect(isDigest(text, due)).toBe(true)
    for (const at of due.keys()) {
      const other = Uint8Array.from(due, (byte, index) => (index === at ? byte ^ 1 : byte))
      expect(isDigest(text, other), `byte ${at}`).toBe(false)
    }
    expect(isDigest(text, due.subarray(0, 31))).toBe(false)
    expect(isDigest(text, Buffer.concat([due, Buffer.of(0)]))).toBe(false)
    expect(isDigest('', new Uint8Array())).toBe(true)
  })
})
