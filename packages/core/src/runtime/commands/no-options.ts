import { valueThat, type OptionCheck } from '../../values/option.ts'

/** Where no options are taken: what is given would be passed over in silence. */
export const noOptions: OptionCheck = valueThat(
  'nothing: it takes no options',
  (value) => value === undefined,
)
