//! Keys that only these tests use: private ones to sign with, and their public halves in PEM and as JWK.

/// PKCS #1, in base64.
pub(super) const RSA_PRIVATE: &str = "MIIEpAIBAAKCAQEAtDloZmhpnoHjGsdVCuDeUs92X3YhRWHaWg5VRT4t0+DiEjpRdcStzlZih7y0w51k0jcFBsEV\
    aBKljMNWZ6BEErjxsEcA3/4CbxxHaKW7wC4GY9dQMqvSc/2SAw685z2v3Fk+JvQifaZ/WLigbcBuC8A/9217mRbH\
    N85QQf+PBdQTdENgJ8JtGCSmtXCEmPMX7xytdB/wdmaZ90Xleuy/jdscI/wxqaRWUS9VSAArnwwWQlGOP66m532Y\
    SKf2X1RPuPwjcsycj6WWSg14BUqaMgNLSqgRMXQV+8zJDWtjDHwmjabECZBVgZtZkhCIOJKnuz8Y7dwb2G9a8rR2\
    ayB/+wIDAQABAoIBABgjRjXNDzRRDiM0hlHWK0CpE6AWeL9Lq0x7dfU3rjid+nlZgTaGOIcVr82hOw6mAm5bOxub\
    +at+L9kKAoUPhH6Dca9b2ySk5xuNjIzaAarsHyP5Hv8iXyX01Lz/GNLZwrd+5mGeOg5dIdo2pBn+914wigCwE6k9\
    0UHKqpokSboMYq2oHLPRAEkIiw3S4RacfkTu8HTMHWdnPke4kGVEWa6RC/3vjRz2Z22YTF/UaAbKd+Yla4TIF/nk\
    Pz0tBgtA+OhqaKU+BIjvwWbKr8+FIk6B2ZrjV2dPxNrDVWmgckOYTJr1sv526T30oiHjLr8VQRzrXzPgAzKzXso5\
    Hd4YB9kCgYEA+0RSw7wCnJ2FLALJVajzzzoKAlLlak5b0pkIZIREcRhMCTdkIz/A6CmV3RaZsenloSwwPVv36xbE\
    +s3MGlbILLlHo5C7VvJVe21V9nTyaYtqxTmJMMivrNqep9kPOOA8EEcYDUULGK3F28/CONajEqrpSaUGhyqqX/Bu\
    RVxG0SMCgYEAt55/bITIKtUoWa+5T/BB304vhC/eG3uvNVopYE2Xsr9EmSExUckVgrdkrk5Hz+aDUJFjhE1n/nG8\
    vP7W7JOjGY1wqKql9svPDWpe+KexbUgcEkImO30TcbuEt4ZKOyzU8Ri+hHtJ6LQbBOlGwJhfivetHO4uhM55/w9m\
    wJM//0kCgYBXzjp1+B+Zh1pgVODytEXvJsMUqM9O5O8lmyDZr3cTZoA7wEWYI9FP0Ch0yE8RY0FBn2WEK71pQ922\
    H3Cxy53MMzsbp5ov+iNxLHYb2CZWR8gZ/883YwoxB3zl/u5Y29NhhNac3IHSL/eyptmiby8xeNRpTegIGBrNyAFg\
    76w3rQKBgQCt1SOVPO+zfTFCFxY9E5uJKJ/baOXA5wssWzsorMycsG7k+YOThecTZUOvsPRTYkuXDs1EB3QYctzX\
    n/sg5XRXUIwDYerVBoXykW1vwnI6nzXUI0PGtdaeqYQvqrbD5uGBjodvLLj/0OJzd9U/qAFrsqb06Jipqj/ctFv2\
    nHDN4QKBgQCJe7JC47iUn8em3QKz/uj6mfsvz41QecdXZf3+p1J0KZiZlBQTgGocgFwzcaFjCVWLfqquXpbDlP7I\
    t0qYekwfoiv5f8DCoH6n7Jwl5E6S7m99Jx64TqwidwTD3N/rZerDu98Wy9mzARReEeGzKJSRpqYsxaa0FxfFnj7N\
    NaXdWw==";

/// P-256, PKCS #8, in base64.
pub(super) const EC_PRIVATE: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg39CKYOcipYwk0Bair2batfRiBSgkK/2nxSUn1/cq\
    ++ahRANCAAStDB5pMUSy3MtVEs/5ODbxbvaTFcSxZq4xMd6udEGlMochQ9PyubwzFWhGs2wTQabKmiF8tjo/iQaw\
    rRa1vlfE";

/// Ed25519, PKCS #8, in base64.
pub(super) const ED_PRIVATE: &str =
    "MC4CAQAwBQYDK2VwBCIEIMu9gejqLpPekECEC/mTOgxAtv65SBah1dcWYBB4q53g";

pub(super) const RSA_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
    MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAtDloZmhpnoHjGsdVCuDe\n\
    Us92X3YhRWHaWg5VRT4t0+DiEjpRdcStzlZih7y0w51k0jcFBsEVaBKljMNWZ6BE\n\
    ErjxsEcA3/4CbxxHaKW7wC4GY9dQMqvSc/2SAw685z2v3Fk+JvQifaZ/WLigbcBu\n\
    C8A/9217mRbHN85QQf+PBdQTdENgJ8JtGCSmtXCEmPMX7xytdB/wdmaZ90Xleuy/\n\
    jdscI/wxqaRWUS9VSAArnwwWQlGOP66m532YSKf2X1RPuPwjcsycj6WWSg14BUqa\n\
    MgNLSqgRMXQV+8zJDWtjDHwmjabECZBVgZtZkhCIOJKnuz8Y7dwb2G9a8rR2ayB/\n\
    +wIDAQAB\n\
    -----END PUBLIC KEY-----\n";

pub(super) const EC_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
    MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAErQweaTFEstzLVRLP+Tg28W72kxXE\n\
    sWauMTHernRBpTKHIUPT8rm8MxVoRrNsE0GmypohfLY6P4kGsK0Wtb5XxA==\n\
    -----END PUBLIC KEY-----\n";

pub(super) const ED_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
    MCowBQYDK2VwAyEA9yyVCbM7L9r4IPRUgaQXiY14HyAzONsbjanXn+SjKCk=\n\
    -----END PUBLIC KEY-----\n";

/// An RSA key of 1024 bits.
pub(super) const RSA_WEAK: &str = "-----BEGIN PUBLIC KEY-----\n\
    MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDekPdLwm2DwjYS8bkoMgWXnkMs\n\
    cz6NK5zyHga2DTFhNEruZWi7iloEtczD4oQr3/YDtyXe/yUAYPo8IPbPBplpxIUy\n\
    AQfLQmtS5vaBJD+e3hfuvVEV/CrLEIyWAlnu+ySRK7RJKoL0PdQa6N4AyNdwH3ek\n\
    pRwDcZiqYIw62CN2VwIDAQAB\n\
    -----END PUBLIC KEY-----\n";

/// The modulus of the RSA key; its exponent is `AQAB`.
pub(super) const RSA_N: &str = "tDloZmhpnoHjGsdVCuDeUs92X3YhRWHaWg5VRT4t0-DiEjpRdcStzlZih7y0w51k0jcFBsEVaBKljMNWZ6BEErjx\
    sEcA3_4CbxxHaKW7wC4GY9dQMqvSc_2SAw685z2v3Fk-JvQifaZ_WLigbcBuC8A_9217mRbHN85QQf-PBdQTdENg\
    J8JtGCSmtXCEmPMX7xytdB_wdmaZ90Xleuy_jdscI_wxqaRWUS9VSAArnwwWQlGOP66m532YSKf2X1RPuPwjcsyc\
    j6WWSg14BUqaMgNLSqgRMXQV-8zJDWtjDHwmjabECZBVgZtZkhCIOJKnuz8Y7dwb2G9a8rR2ayB_-w";

pub(super) const EC_X: &str = "rQweaTFEstzLVRLP-Tg28W72kxXEsWauMTHernRBpTI";
pub(super) const EC_Y: &str = "hyFD0_K5vDMVaEazbBNBpsqaIXy2Oj-JBrCtFrW-V8Q";
pub(super) const ED_X: &str = "9yyVCbM7L9r4IPRUgaQXiY14HyAzONsbjanXn-SjKCk";
