import { internal, type SkaldError } from "@skald/model";

/** Numbers of the Parquet format that segments use, named as its Thrift definition names them. */
export const pageType = { dictionary: 2, dataV2: 3 } as const;
export const physicalType = { int64: 2, byteArray: 6 } as const;
export const encoding = {
  plain: 0,
  rle: 3,
  deltaBinaryPacked: 5,
  deltaLengthByteArray: 6,
  rleDictionary: 8,
} as const;
export const codec = { uncompressed: 0, zstd: 6 } as const;
export const repetition = { required: 0, optional: 1, repeated: 2 } as const;
export const convertedType = { utf8: 0, map: 1 } as const;

export const magic = "PAR1";

/** The error of a page whose bytes are not what its encoding allows. */
export function corruptPage(what: string): SkaldError {
  return internal(`corrupt page: ${what}`);
}
