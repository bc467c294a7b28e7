"""`ramify serve`: a live classifier that many people query and teach.

The supervisor process owns the journal and learns; worker processes answer requests from the last published snapshot.
"""
