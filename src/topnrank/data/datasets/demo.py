"""The data of the demo: a small synthetic set of ratings for films that do not exist.

Each planted factor is a genre, and a film's title is made of the words of the genre it mostly belongs to, so that a
good list of recommendations reads like the taste of one person.
"""

from functools import cache

from topnrank.data.datasets.synthetic import Planted, Recipe, plant
from topnrank.data.interactions import Interactions
from topnrank.rng import stream

_GENRES = {
    "space opera": (
        "Beyond the Amber|Signal from the Ninth|The Cartographer's|Adrift near the Pale|Salvage at the Violet|"
        "The Unmapped|Seven Days to the Hollow|A Garden inside the",
        "Nebula|Orbit|Moon|Comet|Starport|Meridian|Asteroid|Beacon",
    ),
    "noir": (
        "The Umbrella on|Cold Coffee on|A Stranger from|No Witness on|The Locksmith of|Rain over|Last Tram to|"
        "Nine Lies on",
        "Harbour Street|Pier Eleven|Tallow Lane|Foundry Row|Canal Square|Marlow Avenue|Copper Alley|Station Hill",
    ),
    "romance": (
        "Letters from|A Winter in|The Baker of|Dancing Back to|Two Tickets to|The Piano in|Postcards to|"
        "Meet Me Again in",
        "Valmeria|Port Celeste|Santa Brisa|Lindenau|Olivetta|Rosenholm|Cape Verity|Montaverde",
    ),
    "western": (
        "The Quiet Marshal of|Dust over|Four Horses to|The Widow of|A Bell for|Wagons to|No Water in|The Tin Badge of",
        "Sorrow Creek|Juniper Gulch|Larkspur Flats|Bitterroot Bend|Copperhead Mesa|Pilgrim's Ford|Redstone|"
        "Coyote Wells",
    ),
    "ghost story": (
        "The Lantern Keeper of|Footsteps in|The Clockmaker of|What Sleeps under|The Nursery at|A Candle for|"
        "Whispers at|The Thirteenth Guest of",
        "Gallow House|Wrenfield Manor|Thornmere|Ashgrove Hall|Hollowmoor|Ravensby|Mistlethorpe|Cinder Abbey",
    ),
    "comedy": (
        "My Cousin's|The Accidental|Nobody Feeds the|Three Uncles and One|Grandma's Second|The Mayor's|Sorry about the|"
        "Return of the Borrowed",
        "Llama|Trombone|Wedding Cake|Submarine|Tuba|Parade|Casserole|Bagpipe",
    ),
    "heist": (
        "Twelve Minutes to the|The Forger's|A Borrowed|Nobody Moves the|The Glass|One More|The Understudy's|"
        "Midnight and the",
        "Vault|Sapphire|Ledger|Alibi|Tiara|Blueprint|Getaway|Auction",
    ),
    "nature documentary": (
        "The Long March of the|Secret Lives of the|A Year with the|Voices of the|Among the|The Last Summer of the|"
        "Night Songs of the|In Praise of the",
        "Snow Cranes|River Otters|Cloud Forest|Desert Foxes|Coral Gardens|Mountain Hares|Tundra Owls|Kelp Meadows",
    ),
}


def demo_data() -> Interactions:
    """The demo's 30,000 ratings of 600 users for 300 films; always the same."""
    return _planted().interactions


def demo_titles() -> dict[int, str]:
    """Title, year and genre of each film of `demo_data`, by item id."""
    planted, rng = _planted(), stream(0, "demo titles")
    unused = {genre: rng.permutation(_combinations(*words)).tolist() for genre, words in _GENRES.items()}
    names = list(_GENRES)
    genres = [names[factor] for factor in planted.item_factors.argmax(axis=1)]
    years = rng.integers(1948, 2025, len(genres))
    return {
        int(item): f"{unused[genre].pop()} ({year}), {genre}"
        for item, genre, year in zip(planted.interactions.items.ids, genres, years, strict=True)
    }


def _combinations(openings: str, endings: str) -> list[str]:
    return [f"{opening} {ending}" for opening in openings.split("|") for ending in endings.split("|")]


@cache
def _planted() -> Planted:
    # more taste and less noise than in real ratings, so that a few seconds of training show the differences
    return plant(Recipe(users=600, items=300, ratings=30_000, factors=len(_GENRES), taste=1.0, noise=0.5))
