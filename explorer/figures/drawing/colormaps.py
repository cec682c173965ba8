"""Colour maps for magnitudes, safe for colour-blind eyes: 256 colours each, dark to bright.

Both are in the public domain (CC0): viridis by Stéfan van der Walt, Nathaniel Smith and Eric
Firing; cividis by Jamie Nuñez, Christopher Anderton and Ryan Renslow.
"""

from __future__ import annotations

from functools import cache

import numpy as np

_TABLES = {
    "viridis": (
        "44015444025645045745055946075a46085c460a5d460b5e470d60470e61471063471164471365481467"
        "48166848176948186a481a6c481b6d481c6e481d6f481f70482071482173482374482475482576482677"
        "482878482979472a7a472c7a472d7b472e7c472f7d46307e46327e46337f463480453581453781453882"
        "443983443a83443b84433d84433e85423f854240864241864142874144874045884046883f47883f4889"
        "3e49893e4a893e4c8a3d4d8a3d4e8a3c4f8a3c508b3b518b3b528b3a538b3a548c39558c39568c38588c"
        "38598c375a8c375b8d365c8d365d8d355e8d355f8d34608d34618d33628d33638d32648e32658e31668e"
        "31678e31688e30698e306a8e2f6b8e2f6c8e2e6d8e2e6e8e2e6f8e2d708e2d718e2c718e2c728e2c738e"
        "2b748e2b758e2a768e2a778e2a788e29798e297a8e297b8e287c8e287d8e277e8e277f8e27808e26818e"
        "26828e26828e25838e25848e25858e24868e24878e23888e23898e238a8d228b8d228c8d228d8d218e8d"
        "218f8d21908d21918c20928c20928c20938c1f948c1f958b1f968b1f978b1f988b1f998a1f9a8a1e9b8a"
        "1e9c891e9d891f9e891f9f881fa0881fa1881fa1871fa28720a38620a48621a58521a68522a78522a884"
        "23a98324aa8325ab8225ac8226ad8127ad8128ae8029af7f2ab07f2cb17e2db27d2eb37c2fb47c31b57b"
        "32b67a34b67935b77937b87838b9773aba763bbb753dbc743fbc7340bd7242be7144bf7046c06f48c16e"
        "4ac16d4cc26c4ec36b50c46a52c56954c56856c66758c7655ac8645cc8635ec96260ca6063cb5f65cb5e"
        "67cc5c69cd5b6ccd5a6ece5870cf5773d05675d05477d1537ad1517cd2507fd34e81d34d84d44b86d549"
        "89d5488bd6468ed64590d74393d74195d84098d83e9bd93c9dd93ba0da39a2da37a5db36a8db34aadc32"
        "addc30b0dd2fb2dd2db5de2bb8de29bade28bddf26c0df25c2df23c5e021c8e020cae11fcde11dd0e11c"
        "d2e21bd5e21ad8e219dae319dde318dfe318e2e418e5e419e7e419eae51aece51befe51cf1e51df4e61e"
        "f6e620f8e621fbe723fde725"
    ),
    "cividis": (
        "00204d00214e00225000225200235300245500255700255800265a00275c00275e002860002961002a63"
        "002a65002b67002c69002c6a002d6c002e6e002e6f002f6f002f6f00306f00306f00316f00326f00336f"
        "00336f00346f00356e01366e06366e0b376e0f386e12386d15396d183a6d1a3b6d1d3b6d1f3c6d213d6d"
        "233e6c243e6c263f6c28406c2a406c2b416c2d426c2e436c30436c31446b32456b34456b35466b36476b"
        "38486b39486b3a496b3b4a6b3d4a6b3e4b6b3f4c6b404d6b414d6b424e6b434f6b444f6b46506b47516b"
        "48526b49526b4a536b4b546c4c546c4d556c4e566c4f576c50576c51586c52596c53596c545a6c555b6d"
        "565c6d575c6d585d6d595e6d595f6d5a5f6d5b606e5c616e5d616e5e626e5f636e60646f61646f62656f"
        "63666f64666f646770656870666970676970686a71696b716a6c716b6c716c6d726c6e726d6e726e6f73"
        "6f70737071737171747272747273747374757474757575757676767777767877777878777979777a7a78"
        "7b7a787c7b787d7c787e7d787f7d78807e79817f79828079838079848179848279858379868379878479"
        "8885798986798a87798b87798c88798d89798e8a798f8a79908b79918c78928d78938e78948e78958f78"
        "9690789791789892789992789a93779b94779c95779d96779e96779f9777a09877a19976a29a76a39a76"
        "a49b76a59c76a69d75a89e75a99f75aa9f75aba074aca174ada274aea374afa473b0a473b1a573b2a672"
        "b3a772b4a872b5a971b6a971b7aa71b8ab70b9ac70baad70bbae6fbcaf6fbeaf6fbfb06ec0b16ec1b26d"
        "c2b36dc3b46dc4b56cc5b56cc6b66bc7b76bc8b86ac9b96acbba69ccbb69cdbc68cebc68cfbd67d0be67"
        "d1bf66d2c066d3c165d4c264d6c364d7c463d8c563d9c562dac661dbc761dcc860ddc95fdeca5fe0cb5e"
        "e1cc5de2cd5ce3ce5ce4cf5be5d05ae6d159e8d259e9d358ead357ebd456ecd555edd654efd753f0d852"
        "f1d951f2da50f3db4ff4dc4ef6dd4df7de4cf8df4bf9e04afae149fbe248fde346fee445ffe544ffe642"
        "ffe742ffe843ffe944ffea46"
    ),
}

COLOUR_MAPS = tuple(_TABLES)

DIFFERENCE, DIFFERENCE_DARK = "difference", "difference-dark"
_DIVERGING = {  # blue to orange, which no common kind of colour blindness confuses; 0 is neutral
    DIFFERENCE: ("08306b", "2171b5", "86b9de", "dcdcd6", "f5b06b", "d4570a", "7f2704"),
    DIFFERENCE_DARK: ("8cccff", "4a9ae6", "2f6499", "3f444e", "93501c", "dd7d26", "ffb45c"),
}


def difference(dark: bool) -> str:
    """The map for signed figures that goes with a theme."""
    return DIFFERENCE_DARK if dark else DIFFERENCE


@cache
def lut(name: str) -> np.ndarray:
    """(256, 3) uint8 red, green, blue, read-only; KeyError if there is no such map."""
    if name in _TABLES:
        return np.frombuffer(bytes.fromhex(_TABLES[name]), np.uint8).reshape(256, 3)
    stops = np.array([list(bytes.fromhex(stop)) for stop in _DIVERGING[name]], float)
    at = np.linspace(0, len(stops) - 1, 256)
    bands = [np.interp(at, np.arange(len(stops)), band) for band in stops.T]
    table: np.ndarray = np.rint(np.stack(bands, axis=1)).astype(np.uint8)
    table.flags.writeable = False
    return table
